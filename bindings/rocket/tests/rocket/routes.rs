//! Folders as routes: found, redirected and forwarded requests.

use std::fs;
use std::os::unix::fs::symlink;

use eyewall_rocket::{CachedFiles, Eyewall, FileCacheOptions, Symlinks};
use rocket::fs::Options;
use rocket::http::Status;
use rocket::local::asynchronous::Client;
use rocket::{Route, async_test, routes};

use crate::support::{Site, config, field, get, head, text};

/// `/folder` with an index, `/bare` without.
fn site() -> Site {
    let site = Site::new(FileCacheOptions::new());
    for name in ["index.html", "folder/index.html", "folder/main.htm", "bare/a.txt", ".hidden/a.txt", "with space.txt"]
    {
        site.write(name, name);
    }
    site
}

async fn client(site: &Site, base: &str, served: impl Into<Vec<Route>>) -> Client {
    let rocket = rocket::custom(config()).attach(Eyewall::with(site.files.clone())).mount(base, served);
    Client::untracked(rocket).await.unwrap()
}

#[async_test]
async fn a_folder_is_served_as_by_file_server() {
    let site = site();
    for base in ["/", "/static", "/a/b"] {
        let client = client(&site, base, CachedFiles::from(site.root())).await;
        let base = base.trim_end_matches('/');
        for (target, found) in [
            ("/", "index.html"),
            ("/folder/", "folder/index.html"),
            ("/folder", "folder/index.html"),
            ("/folder/main.htm", "folder/main.htm"),
            ("/with%20space.txt", "with space.txt"),
            ("/bare/a.txt?query", "bare/a.txt"),
            ("//bare///a.txt", "bare/a.txt"),
        ] {
            assert_eq!(text(&client, &format!("{base}{target}")).await, (Status::Ok, found.to_owned()), "{target}");
        }
        for target in
            ["/bare", "/bare/", "/.hidden/a.txt", "/missing", "/bare/../index.html", "/bare/%2e%2e/index.html"]
        {
            assert_eq!(text(&client, &format!("{base}{target}")).await.0, Status::NotFound, "{target}");
        }
    }
    let client = client(&site, "/static", CachedFiles::from(site.root())).await;
    assert_eq!(text(&client, "/static").await, (Status::Ok, "index.html".to_owned()));
}

#[async_test]
async fn folders_are_redirected_to_their_slash_if_that_is_set() {
    let site = site();
    for base in ["/", "/static"] {
        let client = client(&site, base, CachedFiles::from(site.root()).normalize_dirs(true)).await;
        let base = base.trim_end_matches('/');
        for (target, location) in
            [("/folder", "/folder/"), ("/folder?a=b&c", "/folder/?a=b&c"), ("//folder", "/folder/")]
        {
            let response = get(&client, &format!("{base}{target}"), &[]).await;
            assert_eq!(response.status(), Status::PermanentRedirect);
            assert_eq!(field(&response, "location"), format!("{base}{location}"), "{target}");
        }
        assert_eq!(text(&client, &format!("{base}/folder/")).await.1, "folder/index.html");
        assert_eq!(text(&client, &format!("{base}/bare")).await.0, Status::NotFound);
    }
}

#[async_test]
async fn an_index_has_the_names_that_were_set() {
    let site = site();
    let served = || CachedFiles::from(site.root());
    let several = client(&site, "/", served().index(["missing.html", "main.htm", "index.html"])).await;
    assert_eq!(text(&several, "/folder/").await.1, "folder/main.htm");
    assert_eq!(text(&several, "/").await.1, "index.html");
    let none = client(&site, "/", served().index::<String>([])).await;
    assert_eq!(text(&none, "/folder/").await.0, Status::NotFound);
    assert_eq!(text(&none, "/folder/index.html").await.0, Status::Ok);
}

#[async_test]
async fn dotfiles_are_served_if_that_is_set() {
    let site = site();
    let client = client(&site, "/", CachedFiles::from(site.root()).dotfiles(true)).await;
    assert_eq!(text(&client, "/.hidden/a.txt").await.1, ".hidden/a.txt");
}

#[async_test]
async fn links_are_followed_as_the_options_permit() {
    let site = site();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret"), "secret").unwrap();
    symlink(elsewhere.path().join("secret"), site.path("out")).unwrap();
    symlink("index.html", site.path("in")).unwrap();
    for (symlinks, inside, outside) in [
        (Symlinks::None, Status::NotFound, Status::NotFound),
        (Symlinks::Below, Status::Ok, Status::NotFound),
        (Symlinks::Anywhere, Status::Ok, Status::Ok),
    ] {
        let client = client(&site, "/", CachedFiles::from(site.root()).symlinks(symlinks)).await;
        assert_eq!((text(&client, "/in").await.0, text(&client, "/out").await.0), (inside, outside));
    }
}

#[async_test]
async fn the_options_of_file_server_mean_the_same() {
    let site = site();
    let served = |options| CachedFiles::from(site.root()).options(options);
    let none = client(&site, "/", served(Options::None)).await;
    assert_eq!((text(&none, "/").await.0, text(&none, "/.hidden/a.txt").await.0), (Status::NotFound, Status::NotFound));
    let both = client(&site, "/", served(Options::Index | Options::DotFiles)).await;
    assert_eq!((text(&both, "/").await.0, text(&both, "/.hidden/a.txt").await.0), (Status::Ok, Status::Ok));
    let normal = client(&site, "/", served(Options::Index | Options::NormalizeDirs)).await;
    assert_eq!(text(&normal, "/folder").await.0, Status::PermanentRedirect);
}

#[async_test]
async fn a_single_file_is_served_for_its_mount_point() {
    let site = site();
    let served = CachedFiles::from(site.path("bare/a.txt")).options(Options::IndexFile);
    let client = client(&site, "/one", served).await;
    assert_eq!(text(&client, "/one").await.1, "bare/a.txt");
    assert_eq!(text(&client, "/one/").await.1, "bare/a.txt");
    assert_eq!(text(&client, "/one/more").await.0, Status::NotFound);
}

#[async_test]
async fn a_missing_root_is_served_once_it_is_there() {
    let site = site();
    let client = client(&site, "/", CachedFiles::from(site.path("later")).missing(true)).await;
    assert_eq!(text(&client, "/a.txt").await.0, Status::NotFound);
    site.write("later/a.txt", "there");
    assert_eq!(text(&client, "/a.txt").await.1, "there");
}

#[async_test]
#[should_panic(expected = "is not a folder")]
async fn a_missing_root_is_refused_at_the_mount() {
    let site = site();
    client(&site, "/", CachedFiles::from(site.path("missing"))).await;
}

#[async_test]
#[should_panic(expected = "is not a folder")]
async fn a_file_is_no_root_unless_that_is_set() {
    let site = site();
    client(&site, "/", CachedFiles::from(site.path("index.html"))).await;
}

#[async_test]
async fn a_missing_file_is_for_the_next_route_by_rank() {
    #[rocket::get("/<_..>", rank = 20)]
    fn fallback() -> &'static str {
        "fallback"
    }
    #[rocket::get("/index.html", rank = 5)]
    fn before() -> &'static str {
        "before"
    }
    let site = site();
    let rocket = site.rocket().mount("/", routes![fallback, before]);
    let client = Client::untracked(rocket).await.unwrap();
    assert_eq!(text(&client, "/missing").await.1, "fallback");
    assert_eq!(text(&client, "/index.html").await.1, "before");
    assert_eq!(text(&client, "/folder/index.html").await.1, "folder/index.html");
    let response = head(&client, "/missing", &[]).await;
    assert_eq!((response.status(), response.body().preset_size()), (Status::Ok, Some(8)));

    let first = Client::untracked(
        rocket::custom(config())
            .attach(Eyewall::with(site.files.clone()))
            .mount("/", routes![fallback, before])
            .mount("/", CachedFiles::from(site.root()).rank(-1)),
    );
    assert_eq!(text(&first.await.unwrap(), "/index.html").await.1, "index.html");
}

#[async_test]
async fn a_folder_uses_the_file_cache_that_it_was_given() {
    let (site, other) = (site(), site());
    let served = CachedFiles::new(other.root(), &other.files);
    // No fairing, so Rocket has no state of Eyewall.
    let client = Client::untracked(rocket::custom(config()).mount("/", served)).await.unwrap();
    assert_eq!(text(&client, "/index.html").await.1, "index.html");
    assert_eq!((site.files.statistics().misses, other.files.statistics().misses), (0, 1));
}
