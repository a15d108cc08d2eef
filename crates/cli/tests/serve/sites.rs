//! One server answers for several hosts, with a configuration file.

use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

#[test]
fn the_host_decides_which_site_answers() {
    let (shop, rest) = (Origin::counting("Cache-Control: max-age=60"), Origin::counting("Cache-Control: max-age=60"));
    let server = Server::configured(&format!(
        "[[site]]\nhosts = [\"shop.example\"]\naliases = [\"www.shop.example\"]\norigins = [\"{}\"]\n\
         [[site]]\nhosts = [\"*.example\"]\norigins = [\"{}\"]\n",
        shop.url(),
        rest.url()
    ));
    assert!(!server.get("http://shop.example/").is_hit());
    assert!(server.get("http://www.shop.example/").is_hit(), "an alias has the entries of its site");
    assert!(server.get("http://SHOP.example.:80/").is_hit(), "a host has one spelling");
    assert!(!server.get("http://other.example/").is_hit());
    assert!(!server.get("http://another.example/").is_hit(), "each host has entries of its own");
    assert_eq!(server.get("http://elsewhere.test/").status, 421);
    assert_eq!(server.ask("GET", "/", &["Host: shop.example"]).status, 400, "two hosts are none");
    let asked: Vec<String> = rest.asked().iter().map(|asked| asked.field("host").to_owned()).collect();
    assert_eq!(asked, ["other.example", "another.example"]);
    assert_eq!(shop.asked().len(), 1);
}

#[test]
fn the_origin_gets_the_fields_of_the_client_that_the_key_has() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_site(&origin.url(), "hosts = [\"a.example\"]\naliases = [\"b.example\"]\n");
    server.ask("GET", "http://b.example/x/../y?z", &["X-Forwarded-For: 192.0.2.9", "X-Forwarded-Host: evil.example"]);
    let asked = origin.asked().remove(0);
    assert_eq!((asked.target.as_str(), asked.field("host")), ("/y?z", "a.example"));
    assert_eq!((asked.field("x-forwarded-for"), asked.field("x-forwarded-host")), ("127.0.0.1", "a.example"));
    let by_its_own_name = Server::over_site(&origin.url(), "[site.origin]\nhost_header = \"origin\"\n");
    by_its_own_name.get("/");
    assert_eq!(origin.asked()[1].field("host"), origin.address.to_string());
}

#[test]
fn files_come_before_the_origin() {
    let site = Site::new();
    site.write("file.txt", "a file");
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_site(&origin.url(), &format!("root = \"{}\"\n", site.path().display()));
    assert_eq!(server.get("/file.txt").text(), "a file");
    assert_eq!((server.get("/page").text(), server.get("/page").text()), ("1", "1"));
    assert_eq!(server.ask("POST", "/file.txt", &["Content-Length: 0"]).text(), "2");
}

#[test]
fn a_request_of_http_1_0_needs_no_host() {
    use std::io::{Read as _, Write as _};
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    let mut stream = crate::common::client::connect(server.address);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.0 200 "), "{reply}");
    assert_eq!(origin.asked()[0].field("host"), "localhost");
}

#[test]
fn origins_get_the_configured_health_checks() {
    let well = Origin::answering(|asked| (200, String::new(), asked.target.clone().into_bytes()));
    let ill =
        Origin::answering(|asked| (if asked.target == "/health" { 500 } else { 200 }, String::new(), b"ill".to_vec()));
    let server = Server::configured(&format!(
        "[[site]]\norigins = [\"{}\", \"{}\"]\n[site.origin.health]\npath = \"/health\"\ninterval = \"10ms\"\nunhealthy_after = 1\n",
        ill.url(),
        well.url()
    ));
    // Each of the two would get every other request.
    server.get_until("/", |reply| reply.text() == "/" && server.get("/").text() == "/");
    assert!(ill.asked().iter().any(|asked| asked.target == "/health"));
}

#[test]
fn a_root_is_served_as_configured() {
    let site = Site::new();
    for (name, text) in [("start.html", "start"), ("page.css", "plain"), ("page.css.gz", "packed"), (".hidden", "dot")]
    {
        site.write(name, text);
    }
    let server = Server::configured(&format!(
        "[[site]]\nroot = \"{}\"\nindex = [\"start.html\"]\ndotfiles = true\nprecompressed = true\n",
        site.path().display()
    ));
    assert_eq!((server.get("/").text(), server.get("/.hidden").text()), ("start", "dot"));
    let packed = server.ask("GET", "/page.css", &["Accept-Encoding: gzip"]);
    assert_eq!((packed.text(), packed.field("content-encoding")), ("packed", "gzip"));
    assert_eq!(server.get("/page.css").text(), "plain");
}
