//! Several Rockets share a volume; bytes stay while they are read.

use eyewall_rocket::{CachedFiles, Eyewall, FileCache};
use rocket::async_test;
use rocket::figment::Figment;
use rocket::local::asynchronous::Client;
use rocket::tokio::io::AsyncReadExt as _;

use crate::support::{Site, WAYS, bytes, config, get, text, volume};

#[async_test]
async fn a_file_read_by_one_rocket_is_a_hit_of_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::with(FileCache::new(volume(1 << 20)));
    site.write("a.txt", "content");
    site.settle("a.txt");
    let path = folder.path().join("files.eyewall").to_str().unwrap().to_owned();
    let configured = Figment::from(config()).merge(("eyewall.path", path)).merge(("eyewall.size", 4 << 20));
    let mut statistics = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let rocket = rocket::custom(&configured).attach(Eyewall::fairing()).mount("/", CachedFiles::from(site.root()));
        let client = Client::untracked(rocket).await.unwrap();
        assert_eq!(text(&client, "/a.txt").await.1, "content");
        let told = client.rocket().state::<FileCache>().unwrap().statistics();
        statistics.push((told.hits, told.misses));
        clients.push(client);
    }
    assert_eq!(statistics, [(0, 1), (1, 0)]);
}

#[async_test]
async fn bytes_that_are_being_sent_stay_as_they_are() {
    let site = Site::with(FileCache::new(volume(16 << 20)));
    let content = bytes(500_000, 3);
    site.write("a.bin", &content);
    site.settle("a.bin");
    let client = site.client().await;
    for way in WAYS {
        let target = format!("{way}/a.bin");
        text(&client, &target).await;
        let mut slow = get(&client, &target, &[]).await;
        let mut received = vec![0; 1000];
        slow.read_exact(&mut received).await.unwrap();
        // The file is gone from the volume and from the disk, and its room has been taken three times over.
        assert!(site.files.remove(site.path("a.bin")).unwrap());
        site.write("a.bin", "other");
        for number in 0..96_u32 {
            site.files.cache().put(number.to_le_bytes(), vec![0xff; 500_000]).unwrap();
        }
        slow.read_to_end(&mut received).await.unwrap();
        assert!(received == content);
        drop(slow);
        site.write("a.bin", &content);
        site.settle("a.bin");
    }
}
