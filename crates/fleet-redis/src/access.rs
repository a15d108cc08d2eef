//! How to find the server that has the log, and to connect to it.
//!
//! A Sentinel names the server. In a cluster, any server redirects to the one that has the slot of the log's keys, which are all in one slot.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, Pipeline,
    RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind, TlsCertificates,
};

use crate::Settings;
use crate::redis_url::{Place, RedisUrl};

/// The timeout of a connection's beginning, and of questions where the server is.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The most redirections from one server of a cluster to the next.
const REDIRECTIONS_MAX: usize = 5;

/// How to connect.
#[derive(Clone)]
pub struct Access {
    password: Option<String>,
    sentinel_password: Option<String>,
    authority: Option<Vec<u8>>,
    /// A key of the log.
    key: String,
}

/// The server that has the log.
#[derive(Clone)]
pub struct Found {
    info: ConnectionInfo,
    /// The slot is on its way to this server, which answers only requests that say so.
    is_asking: bool,
}

/// A connection to it.
#[derive(Clone)]
pub struct Connection {
    inner: MultiplexedConnection,
    is_asking: bool,
}

impl Access {
    /// By these passwords of servers and Sentinels, and certificates to trust. In a cluster, the server is the one that has `key`.
    pub fn new(
        (password, sentinel_password): (Option<String>, Option<String>),
        authority: Option<Vec<u8>>,
        key: String,
    ) -> Self {
        Self { password, sentinel_password, authority, key }
    }

    pub(crate) fn of(settings: &Settings, key: String) -> Self {
        let Settings { password, sentinel_password, authority, .. } = settings.clone();
        Self::new((password, sentinel_password), authority, key)
    }

    /// Finds the server that an address leads to.
    ///
    /// # Errors
    /// Those of Redis, or a Sentinel that knows no such server.
    pub async fn find(&self, url: &RedisUrl) -> RedisResult<Found> {
        let info = url.info()?;
        match url.place() {
            Place::Server => Ok(Found { info, is_asking: false }),
            Place::Sentinel { master } => self.find_by_sentinel(info, master).await,
            Place::Cluster => self.find_in_cluster(info).await,
        }
    }

    async fn find_by_sentinel(&self, sentinel: ConnectionInfo, master: &str) -> RedisResult<Found> {
        // The user and the database of the address are for the server.
        let plain =
            self.sentinel_password.iter().fold(RedisConnectionInfo::default(), RedisConnectionInfo::set_password);
        let mut connection = self.open(sentinel.clone().set_redis_settings(plain), CONNECT_TIMEOUT).await?;
        let mut question = redis::cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(master);
        let Some((host, port)) = question.query_async::<Option<(String, u16)>>(&mut connection).await? else {
            let text = format!("this Sentinel knows no server `{master}`");
            return Err(RedisError::from((ErrorKind::InvalidClientConfig, "no such name", text)));
        };
        Ok(Found { info: at(sentinel, host, port), is_asking: false })
    }

    async fn find_in_cluster(&self, first: ConnectionInfo) -> RedisResult<Found> {
        let mut found = Found { info: first, is_asking: false };
        let mut redirections = 0;
        loop {
            let mut connection = self.connect(&found, CONNECT_TIMEOUT).await?;
            let mut question = redis::cmd("HEXISTS");
            question.arg(&self.key).arg("number");
            let Err(error) = connection.query::<bool>(&question).await else { return Ok(found) };
            redirections += 1;
            let Some((host, port)) = redirection(&error).filter(|_| redirections <= REDIRECTIONS_MAX) else {
                return Err(error);
            };
            // A server that doesn't know its own address leaves the host empty.
            let host = if host.is_empty() { host_of(&found.info) } else { host.to_owned() };
            let is_asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
            found = Found { info: at(found.info, host, port), is_asking };
        }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Those of Redis.
    pub async fn connect(&self, found: &Found, timeout: Duration) -> RedisResult<Connection> {
        let redis = found.info.redis_settings().clone();
        let redis = self.password.iter().fold(redis, RedisConnectionInfo::set_password);
        let inner = self.open(found.info.clone().set_redis_settings(redis), timeout).await?;
        Ok(Connection { inner, is_asking: found.is_asking })
    }

    async fn open(&self, info: ConnectionInfo, timeout: Duration) -> RedisResult<MultiplexedConnection> {
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = match &self.authority {
            Some(authority) if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) => {
                Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(authority.clone()) })?
            }
            _ => Client::open(info)?,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(timeout));
        client.get_multiplexed_async_connection_with_config(&config).await
    }
}

impl Found {
    /// The address of the server. For one that was given by its address, this is as it was written.
    pub(crate) fn shown(&self, url: &RedisUrl) -> String {
        if *url.place() == Place::Server {
            return url.to_string();
        }
        let scheme = if url.is_tls() { "rediss" } else { "redis" };
        format!("{scheme}://{}", self.info.addr())
    }
}

impl Connection {
    /// Sends a command.
    ///
    /// # Errors
    /// Those of Redis.
    pub async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        let mut answers: Vec<T> = self.query_all(std::slice::from_ref(command)).await?;
        answers.pop().ok_or_else(|| RedisError::from((ErrorKind::Client, "no answer")))
    }

    /// Sends several commands at once. Their answers come in the same order.
    ///
    /// # Errors
    /// Those of Redis, for any of the commands.
    pub(crate) async fn query_all<T: FromRedisValue>(&mut self, commands: &[Cmd]) -> RedisResult<Vec<T>> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            if self.is_asking {
                // It is for the next command alone.
                pipeline.cmd("ASKING").ignore();
            }
            pipeline.add_command(command.clone());
        }
        pipeline.query_async(&mut self.inner).await.map_err(first_of)
    }
}

/// The host and port of a redirection.
fn redirection(error: &RedisError) -> Option<(&str, u16)> {
    let (address, _) = error.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

/// The error of the first command that failed, which says more than that some did.
fn first_of(error: RedisError) -> RedisError {
    match error.clone().into_server_errors().as_deref() {
        Some([(_, first), ..]) => first.clone().into(),
        _ => error,
    }
}

/// The same for another host and port.
fn at(info: ConnectionInfo, host: String, port: u16) -> ConnectionInfo {
    let address = match info.addr() {
        ConnectionAddr::TcpTls { .. } => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        _ => ConnectionAddr::Tcp(host, port),
    };
    info.set_addr(address)
}

fn host_of(info: &ConnectionInfo) -> String {
    match info.addr() {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
        _ => "localhost".to_owned(),
    }
}
