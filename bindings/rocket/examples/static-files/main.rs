//! A folder of static files, and a handler that returns a file: Rocket's example of this name, with a cache.
//!
//! `cargo run -p eyewall-rocket --example static-files`, then <http://127.0.0.1:8000>. Comments mark the lines
//! that differ from Rocket's own `FileServer` and `NamedFile`.

use eyewall_rocket::{CachedFiles as FileServer, Eyewall}; // Was: use rocket::fs::FileServer;
use rocket::fs::relative;

/// Serves files by a handler. If it does nothing else, `FileServer` is simpler.
mod manual {
    use std::path::{Path, PathBuf};

    use eyewall_rocket::{CachedFile, FileCache}; // Was: use rocket::fs::NamedFile;
    use rocket::State;

    #[rocket::get("/second/<path..>")]
    pub(crate) async fn second(path: PathBuf, files: &State<FileCache>) -> Option<CachedFile> {
        let mut path = Path::new(super::relative!("examples/static-files/static")).join(path);
        if path.is_dir() {
            path.push("index.html");
        }
        CachedFile::open(path, files).await.ok() // Was: NamedFile::open(path)
    }
}

#[rocket::launch]
fn rocket() -> _ {
    rocket::build()
        .attach(Eyewall::fairing()) // New.
        .mount("/", rocket::routes![manual::second])
        .mount("/", FileServer::from(relative!("examples/static-files/static")))
}

#[cfg(test)]
mod tests {
    use rocket::http::Status;
    use rocket::local::blocking::Client;

    #[test]
    fn files_are_served_both_ways() {
        let client = Client::tracked(super::rocket()).unwrap();
        for (target, content) in [
            ("/", Some("Files, through a volume")),
            ("/hidden/", Some("Not linked")),
            ("/hidden", Some("Not linked")),
            ("/second/hidden", Some("Not linked")),
            ("/second/style.css", Some("font-family")),
            ("/style.css", Some("font-family")),
            ("/missing", None),
            ("/second/missing", None),
        ] {
            let response = client.get(target).dispatch();
            assert_eq!(response.status() == Status::Ok, content.is_some(), "{target}");
            assert!(content.is_none_or(|content| response.into_string().unwrap().contains(content)), "{target}");
        }
    }
}
