//! Serves a folder with axum: `cargo run -p eyewall-tower --example serve_dir -- ./site`. The volume is in
//! memory, or in a file that stays and that several processes share: `... -- ./site files.eyewall`.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use axum::Router;
use axum::routing::get;
use eyewall::Options;
use eyewall_tower::files::{FileCache, ServeDir, ServeFile};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("the folder is missing; usage: serve_dir FOLDER [VOLUME]")?);
    let size = Options::new().size(256 << 20);
    let files = FileCache::new(match arguments.next() {
        Some(volume) => size.open(volume)?,
        None => size.anonymous()?,
    });

    let site = ServeDir::new(&root, &files)?
        .precompressed(true)
        .cache_status("files")
        .not_found_service(ServeFile::new(root.join("404.html"), &files));
    let numbers = files.clone();
    let app = Router::new()
        .route("/statistics", get(async move || format!("{:#?}\n", numbers.statistics())))
        .fallback_service(site);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
