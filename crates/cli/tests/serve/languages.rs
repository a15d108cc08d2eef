//! `accept_language` reduces what clients accept to one of the site's languages, so an address has few variants.

use crate::common::origin::Origin;
use crate::common::server::Server;

/// A field that forces the full path, and has no other effect.
const FULL_PATH: &str = "TE: trailers";

fn origin() -> Origin {
    Origin::answering(|asked| {
        let fields = "Cache-Control: max-age=60\r\nVary: Accept-Language".to_owned();
        (200, fields, asked.field("accept-language").as_bytes().to_vec())
    })
}

#[test]
fn an_address_has_a_variant_for_each_language_of_the_site() {
    let origin = origin();
    let server = Server::over_site(&origin.url(), "accept_language = [\"en\", \"de\", \"pt-BR\"]\n");
    for (accepted, expected) in [
        ("Accept-Language: de-AT,de;q=0.9,en;q=0.8", "de"),
        ("Accept-Language: de", "de"),
        ("Accept-Language: nl;q=0.9, DE-ch;q=0.3", "de"),
        ("Accept-Language: pt-BR", "pt-BR"),
        ("Accept-Language: pt", "en"),
        ("Accept-Language: *", "en"),
        ("X-None: 1", "en"),
        ("Accept-Language: de;q=0", "en"),
    ] {
        for fields in [&[accepted][..], &[accepted, FULL_PATH]] {
            assert_eq!(server.ask("GET", "/", fields).text(), expected, "{accepted}");
        }
    }
    assert_eq!(origin.asked().len(), 3);
    let hit = server.ask("GET", "/", &["Accept-Language: de-1996"]);
    assert_eq!((hit.is_hit(), hit.field("vary")), (true, "Accept-Language"));
    assert_eq!(server.ask("POST", "/", &["Accept-Language: de-1996"]).text(), "de");
}

#[test]
fn the_key_and_the_rules_see_the_language_of_the_site() {
    let origin = origin();
    let server = Server::over_site(
        &origin.url(),
        "accept_language = [\"en\", \"de\"]\nkey = { headers = [\"Accept-Language\"] }\n\
         [[site.rule]]\nheader = { Accept-Language = \"de\" }\nset_headers = { Content-Language = \"de\" }\n",
    );
    for accepted in ["Accept-Language: de-AT", "Accept-Language: fr, de;q=0.1"] {
        for fields in [&[accepted][..], &[accepted, FULL_PATH]] {
            let reply = server.ask("GET", "/", fields);
            assert_eq!((reply.text(), reply.field("content-language")), ("de", "de"));
        }
    }
    assert_eq!(server.get("/").field("content-language"), "");
    assert_eq!(origin.asked().len(), 2);
}
