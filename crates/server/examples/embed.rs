//! A program that embeds the server of Eyewall: it serves a folder from a volume that it also uses itself, until Ctrl-C.
//!
//! ```sh
//! cargo run -p eyewall-server --example embed -- FOLDER
//! ```

use std::error::Error;

use eyewall::{Cache, Options};
use eyewall_server::Server;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    // In memory; `open` instead of `anonymous` keeps it in a file, which other processes can share.
    let cache = Options::new().size(64 << 20).anonymous()?;
    let server = start(&folder, "127.0.0.1:8080", cache.clone())?;
    for address in server.addresses() {
        println!("serving {folder} on http://{address}/");
    }
    server.wait()?;
    println!("{} entries were in the volume", cache.stats()?.entries);
    Ok(())
}

/// Starts a server of `folder` at `address`; port 0 takes a free port.
pub(crate) fn start(folder: &str, address: &str, cache: Cache) -> Result<Server, Box<dyn Error>> {
    let configuration = format!(
        r#"
        [server]
        listen = ["{address}"]
        workers = 2

        [[site]]
        root = '{folder}'
        "#
    );
    // The first SIGINT or SIGTERM ends it gracefully, and `wait` returns.
    Ok(Server::builder().toml(&configuration)?.cache(cache).signals(true).start()?)
}
