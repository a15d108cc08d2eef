//! Objects on Redis: they come back, in bounded space, and a Redis in trouble holds up nobody.

use std::time::{Duration, Instant};

use bytes::Bytes;
use eyewall_second_level::{Backend, GateState, Offered, RedisSettings, Settings};

use super::redis::Redis;
use super::{TTL, await_status, put, settings, start};

const SIZE: u64 = 1 << 20;

fn on(redis: &Redis) -> Settings {
    settings(Backend::Redis(RedisSettings {
        servers: vec![redis.url().parse().expect("it is an address")],
        password: None,
        sentinel_password: None,
        authority: None,
        name: "test".to_owned(),
        size: SIZE,
    }))
}

#[test]
fn what_one_offers_another_one_gets() {
    let Some(redis) = Redis::start(&[]) else { return };
    let [(one, _one), (other, _other)] = [(); 2].map(|()| start(&on(&redis)));
    assert_eq!(other.ask_blocking(b"key"), None);
    put(&one, b"key", b"value");
    put(&one, b"empty", b"");
    assert_eq!(other.ask_blocking(b"key").unwrap(), &b"value"[..]);
    assert_eq!(other.ask_blocking(b"empty").unwrap(), &b""[..]);
    put(&one, b"key", b"later");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert_eq!(runtime.block_on(other.ask(b"key")).unwrap(), &b"later"[..]);
    let status = other.status();
    assert_eq!((status.hits, status.misses, status.failures), (3, 1, 0));
    assert_eq!(one.status().stored, 3);
    let secret = Settings { secret: Some(b"secret".to_vec()), ..on(&redis) };
    let (signed, _signed) = start(&secret);
    assert_eq!(signed.ask_blocking(b"key"), None, "nobody with the secret wrote it");
    put(&signed, b"key", b"signed");
    assert_eq!(signed.ask_blocking(b"key").unwrap(), &b"signed"[..]);
    assert_eq!(other.ask_blocking(b"key"), None);
}

#[test]
fn an_object_expires_and_nothing_is_left() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (second_level, _thread) = start(&on(&redis));
    assert_eq!(second_level.offer(b"key", Bytes::from_static(b"value"), Duration::from_millis(50)), Offered::Queued);
    await_status(&second_level, |status| status.stored == 1);
    redis.command_until("DBSIZE", |line| line == ":0");
    assert_eq!(second_level.ask_blocking(b"key"), None);
    assert_eq!(second_level.offer(b"key", Bytes::new(), Duration::ZERO), Offered::Dropped);
}

#[test]
fn the_size_is_bounded_and_popular_objects_stay() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (second_level, _thread) = start(&on(&redis));
    let value = vec![b'v'; 10_000];
    let popular: Vec<String> = (0..20).map(|number| format!("popular {number}")).collect();
    for key in &popular {
        put(&second_level, key.as_bytes(), &value);
    }
    for number in 0..600 {
        put(&second_level, format!("once {number}").as_bytes(), &value);
        for key in &popular[number % 4 * 5..][..5] {
            second_level.ask_blocking(key.as_bytes());
        }
        assert!(second_level.status().bytes.unwrap() <= SIZE);
    }
    let found = popular.iter().filter(|key| second_level.ask_blocking(key.as_bytes()).is_some()).count();
    assert_eq!(found, popular.len());
    let objects: u64 = redis.command("DBSIZE")[1..].parse().unwrap();
    assert!((80..=104).contains(&objects), "{objects} of 10 KB are in 1 MB");
    // One object that takes the place of all.
    put(&second_level, b"long", &vec![b'v'; 1_000_000]);
    assert!(second_level.ask_blocking(b"long").is_some());
    let status = second_level.status();
    assert!(status.bytes.unwrap() <= SIZE && status.refused == 0, "{status:?}");
}

#[test]
fn objects_that_can_never_fit_are_dropped_or_refused() {
    let Some(redis) = Redis::start(&[]) else { return };
    let small = Settings { object_bytes_max: 10, ..on(&redis) };
    let (second_level, _thread) = start(&small);
    assert!(second_level.takes(10) && !second_level.takes(11));
    assert_eq!(second_level.offer(b"key", Bytes::from_static(b"hello, world"), TTL), Offered::Dropped);
    let (second_level, _thread) = start(&Settings { object_bytes_max: SIZE * 2, ..on(&redis) });
    put(&second_level, b"key", &vec![0; SIZE as usize + 1]);
    let status = second_level.status();
    assert_eq!((status.refused, second_level.ask_blocking(b"key")), (1, None));
}

#[test]
fn a_server_without_memory_still_answers() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (second_level, _thread) = start(&on(&redis));
    put(&second_level, b"key", b"value");
    assert_eq!(redis.command("CONFIG SET maxmemory 1"), "+OK");
    for _ in 0..3 {
        put(&second_level, b"other", b"value");
    }
    let status = second_level.status();
    assert_eq!((status.offers_failed, status.bytes.is_some()), (3, true), "{status:?}");
    assert_eq!(second_level.offer(b"other", Bytes::new(), TTL), Offered::Dropped, "offers pause");
    for _ in 0..10 {
        assert_eq!(second_level.ask_blocking(b"key").unwrap(), &b"value"[..]);
    }
    assert_eq!(second_level.ask_blocking(b"other"), None);
    assert_eq!(redis.command("CONFIG SET maxmemory 0"), "+OK");
    while second_level.offer(b"other", Bytes::from_static(b"later"), TTL) == Offered::Dropped {
        std::thread::sleep(Duration::from_millis(5));
    }
    await_status(&second_level, |status| status.stored == 2);
    assert_eq!(second_level.ask_blocking(b"other").unwrap(), &b"later"[..]);
}

#[test]
fn a_server_that_hangs_or_dies_is_not_asked_until_it_answers_again() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let timeout = Duration::from_millis(20);
    let (second_level, _thread) = start(&Settings { timeout, ..on(&redis) });
    for number in 0..2 {
        put(&second_level, b"key", b"value");
        if number == 0 {
            redis.hang();
        } else {
            redis.kill();
        }
        let start = Instant::now();
        let mut asked = 0;
        while second_level.status().state == GateState::Closed {
            second_level.ask_blocking(b"key");
            asked += 1;
        }
        assert_eq!(second_level.status().state, GateState::Failing);
        assert!(asked < 10 || start.elapsed() > timeout * 3, "{asked}");
        for _ in 0..1000 {
            // These don't wait: at most a probe is sent.
            assert_eq!(second_level.ask_blocking(b"key"), None);
        }
        if number == 0 {
            redis.wake();
        } else {
            redis.restart();
        }
        while second_level.ask_blocking(b"key").is_none() && number == 0
            || second_level.status().state != GateState::Closed
        {
            second_level.ask_blocking(b"key");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let status = second_level.status();
    assert!(status.opened >= 2 && status.skipped >= 2000 && status.trouble.is_some(), "{status:?}");
}

#[test]
fn without_a_server_it_starts_and_finds_it_later() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    redis.kill();
    let (second_level, _thread) = start(&on(&redis));
    assert!(second_level.status().trouble.is_some());
    assert_eq!(second_level.ask_blocking(b"key"), None);
    redis.restart();
    // The second server of the list is there.
    let Settings { backend: Backend::Redis(there), .. } = on(&redis) else { unreachable!("it is on Redis") };
    let servers = ["redis+unix:///nowhere", &redis.url()].map(|server| server.parse().unwrap()).to_vec();
    let (other, _other) = start(&settings(Backend::Redis(RedisSettings { servers, ..there })));
    for second_level in [&second_level, &other] {
        while second_level.offer(b"key", Bytes::from_static(b"value"), TTL) == Offered::Dropped
            || second_level.ask_blocking(b"key").is_none()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
