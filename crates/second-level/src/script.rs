//! Scripts for Redis. Only the first call of a server sends a script's text.

use aws_lc_rs::digest;
use eyewall_fleet_redis::Connection;
use redis::{Cmd, FromRedisValue, RedisResult};

use crate::frame::in_hexadecimal;

#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    /// The name by which Redis knows it.
    digest: String,
}

impl Script {
    pub(crate) fn new(parts: &[&str]) -> Self {
        let text = parts.concat();
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        Self { text, digest: in_hexadecimal(digest.as_ref()) }
    }

    /// Calls it with these keys and further arguments.
    ///
    /// # Errors
    /// Those of Redis.
    pub(crate) async fn call<T: FromRedisValue>(
        &self,
        connection: &mut Connection,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> RedisResult<T> {
        let command = |name: &str, script: &str| -> Cmd {
            let mut command = redis::cmd(name);
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            command
        };
        match connection.query(&command("EVALSHA", &self.digest)).await {
            Err(error) if error.code() == Some("NOSCRIPT") => connection.query(&command("EVAL", &self.text)).await,
            result => result,
        }
    }
}
