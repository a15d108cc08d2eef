//! The volume by Rocket's configuration.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use eyewall_rocket::{CachedFiles, Error, Eyewall, FileCache, admission};
use rocket::error::ErrorKind;
use rocket::figment::Figment;
use rocket::figment::providers::{Format as _, Toml};
use rocket::local::asynchronous::Client;
use rocket::{Build, Rocket, async_test};

use crate::support::{Site, bytes, config, field, get, text, volume};

/// As Rocket reads `Rocket.toml`.
fn configured(settings: &str) -> Figment {
    Figment::from(config()).merge(Toml::string(settings).nested())
}

fn opened(settings: &str) -> Result<FileCache, Error> {
    Eyewall::fairing().open(&configured(settings))
}

/// The error for settings that are refused.
fn refused(settings: &str) -> String {
    opened(settings).unwrap_err().to_string()
}

async fn failure(rocket: Rocket<Build>) -> bool {
    let error = Client::untracked(rocket).await.unwrap_err();
    matches!(error.kind(), ErrorKind::FailedFairings(failed) if failed.iter().any(|info| info.name == "Eyewall"))
}

fn toml_of(path: &Path, rest: &str) -> String {
    format!("[default.eyewall]\npath = {:?}\n{rest}", path.to_str().unwrap())
}

#[async_test]
async fn without_settings_there_is_a_volume_in_memory() {
    let site = Site::with(FileCache::new(volume(1 << 20)));
    site.write("a.txt", "content");
    let rocket = rocket::custom(config()).attach(Eyewall::fairing()).mount("/", CachedFiles::from(site.root()));
    let client = Client::untracked(rocket).await.unwrap();
    assert_eq!(text(&client, "/a.txt").await.1, "content");
    let cache = client.rocket().state::<eyewall::Cache>().unwrap();
    assert_eq!((cache.path(), cache.size()), (None, 64 << 20));
    assert!(client.rocket().state::<FileCache>().is_some());
}

#[async_test]
async fn a_volume_is_as_it_was_configured() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::with(FileCache::new(volume(1 << 20)));
    for (name, length) in [("a.txt", 10), ("b.txt", 2000), ("c.txt", 70_000)] {
        site.write(name, bytes(length, 1));
    }
    site.write("b.txt.gz", "precompressed");
    site.settle("b.txt.gz");
    let settings =
        "size = \"4 MiB\"\nmin_file_size = \"1 KiB\"\nmax_file_size = 65536\nfreshness = 3600\nprecompressed = true\n";
    let path = folder.path().join("files.eyewall");
    let rocket = rocket::custom(configured(&toml_of(&path, settings)))
        .attach(Eyewall::fairing())
        .mount("/", CachedFiles::from(site.root()));
    let client = Client::untracked(rocket).await.unwrap();
    let files = client.rocket().state::<FileCache>().unwrap();
    assert_eq!((files.cache().path(), files.cache().size()), (Some(&*path), 4 << 20));
    for name in ["a.txt", "b.txt", "c.txt"] {
        text(&client, &format!("/{name}")).await;
    }
    let kept = ["a.txt", "b.txt", "c.txt"].map(|name| files.contains(site.path(name)).unwrap());
    assert_eq!(kept, [false, true, false]);
    let precompressed = get(&client, "/b.txt", &[("accept-encoding", "gzip")]).await;
    assert_eq!(field(&precompressed, "content-encoding"), "gzip");
    let rocket = rocket::custom(config())
        .attach(Eyewall::with(files.clone()))
        .mount("/", CachedFiles::from(site.root()).precompressed(true));
    let client = Client::untracked(rocket).await.unwrap();
    let precompressed = get(&client, "/b.txt", &[("accept-encoding", "gzip")]).await;
    assert_eq!(field(&precompressed, "content-encoding"), "gzip", "as a folder says itself");
}

#[async_test]
async fn a_freshness_of_seconds_is_trusted_for_that_time() {
    let site = Site::with(FileCache::new(volume(1 << 20)));
    for (freshness, after) in [("3600", "first"), ("0.0", "second"), ("\"watched\"", "second")] {
        site.write("a.txt", "first");
        site.settle_for("a.txt", Duration::from_millis(1200));
        let files = opened(&format!("[default.eyewall]\nfreshness = {freshness}")).unwrap();
        let rocket = rocket::custom(config()).attach(Eyewall::with(files)).mount("/", CachedFiles::from(site.root()));
        let client = Client::untracked(rocket).await.unwrap();
        assert_eq!(text(&client, "/a.txt").await.1, "first");
        site.write("a.txt", "second");
        assert_eq!(text(&client, "/a.txt").await.1, after, "{freshness}");
    }
}

#[test]
fn a_path_is_below_the_folder_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Rocket.toml");
    fs::write(&file, "[default.eyewall]\npath = \"files.eyewall\"\nsize = \"1 MiB\"").unwrap();
    let figment = Figment::from(config()).merge(Toml::file(&file).nested());
    let files = Eyewall::fairing().open(&figment).unwrap();
    assert_eq!(files.cache().path(), Some(&*folder.path().join("files.eyewall")));
}

#[test]
fn an_admission_works_with_the_settings() {
    let site = Site::with(FileCache::new(volume(1 << 20)));
    site.write("a.css", "a");
    site.write("a.mp4", "a");
    site.settle("a.mp4");
    let fairing = Eyewall::fairing().admission(admission::extensions(["css"]));
    let files = fairing.open(&Figment::from(config())).unwrap();
    assert!(files.refresh(site.path("a.css")).unwrap() && !files.refresh(site.path("a.mp4")).unwrap());
    let given = Eyewall::with(files).admission(admission::everything());
    assert!(!given.open(&Figment::from(config())).unwrap().refresh(site.path("a.mp4")).unwrap(), "it has its own");
}

#[test]
fn wrong_settings_are_refused_with_their_names() {
    for (setting, said) in [
        ("sise = 5", "default.eyewall.sise"),
        ("size = \"much\"", "default.eyewall.size"),
        ("freshness = \"now\"", "\"watched\", or a number of seconds"),
        ("freshness = -1", "\"watched\", or a number of seconds"),
        ("freshness = -0.5", "\"watched\", or a number of seconds"),
        ("precompressed = 3", "precompressed"),
        ("size = 1000", "524288"),
    ] {
        let message = refused(&format!("[default.eyewall]\n{setting}"));
        assert!(message.contains(said), "{setting}: {message}");
    }
    assert!(matches!(opened("[default.eyewall]\nsise = 5"), Err(Error::Settings(_))));
}

#[async_test]
async fn rocket_does_not_launch_if_the_volume_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/files.eyewall");
    let settings = toml_of(&path, "");
    assert!(refused(&settings).contains(&format!("can't open the volume {}", path.display())));
    assert!(failure(rocket::custom(configured(&settings)).attach(Eyewall::fairing())).await);
    // A foreign file is left unchanged.
    let foreign = folder.path().join("foreign");
    fs::write(&foreign, vec![1; 1 << 20]).unwrap();
    assert!(failure(rocket::custom(configured(&toml_of(&foreign, ""))).attach(Eyewall::fairing())).await);
    assert!(fs::read(&foreign).unwrap() == vec![1; 1 << 20]);
    assert!(failure(rocket::custom(configured("[default.eyewall]\nsise = 5")).attach(Eyewall::fairing())).await);
}

#[test]
fn a_broken_volume_is_put_aside_if_that_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken");
    fs::write(&path, "").unwrap();
    assert!(refused(&toml_of(&path, "")).contains("put_aside_broken"));
    let files = opened(&toml_of(&path, "put_aside_broken = true")).unwrap();
    assert!(files.cache().put_aside().unwrap().to_str().unwrap().contains("broken.broken-"));
}

#[test]
fn hits_are_verified_if_that_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("careful");
    let files = opened(&toml_of(&path, "size = \"1 MiB\"\nverify_hits = true")).unwrap();
    let value = b"a value that is damaged later";
    files.cache().put("key", value).unwrap();
    assert_eq!(&*files.cache().get("key").unwrap().unwrap(), value);
    let held = fs::read(&path).unwrap();
    let at = held.windows(value.len()).position(|found| found == value).unwrap();
    fs::File::options().write(true).open(&path).unwrap().write_all_at(b"#", at as u64).unwrap();
    assert!(files.cache().get("key").unwrap().is_none());
}

#[async_test]
async fn two_file_caches_are_refused() {
    let rocket = rocket::custom(config()).manage(FileCache::new(volume(1 << 20))).attach(Eyewall::fairing());
    assert!(failure(rocket).await);
}

#[async_test]
async fn the_last_of_two_fairings_counts_and_the_programs_own_volume_stays() {
    let (own, files) = (volume(1 << 20), FileCache::new(volume(2 << 20)));
    let rocket = rocket::custom(config()).manage(own).attach(Eyewall::fairing()).attach(Eyewall::with(files));
    let client = Client::untracked(rocket).await.unwrap();
    assert_eq!(client.rocket().state::<FileCache>().unwrap().cache().size(), 2 << 20);
    assert_eq!(client.rocket().state::<eyewall::Cache>().unwrap().size(), 1 << 20);
}

#[async_test]
async fn rocket_does_not_launch_without_a_file_cache() {
    let folder = tempfile::tempdir().unwrap();
    let rocket = rocket::custom(config()).mount("/", CachedFiles::from(folder.path()));
    let error = Client::untracked(rocket).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SentinelAborts(_)));
}
