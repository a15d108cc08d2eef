use super::*;

pub(super) fn problems(text: &str) -> Vec<String> {
    let told = |problem: &Problem| {
        let place =
            problem.place.as_ref().map_or_else(String::new, |place| format!("{}:{} ", place.line, place.column));
        format!("{place}{}", problem.message)
    };
    parse(text).err().unwrap_or_default().iter().map(told).collect()
}

/// A site that is as it should be, and then this.
fn with_site(text: &str) -> Vec<String> {
    problems(&format!("[[site]]\norigins = [\"http://a\"]\n{text}"))
}

#[track_caller]
pub(super) fn is_refused(found: &[String], words: &[&str]) {
    assert_eq!(found.len(), words.len(), "{found:#?}");
    for (found, words) in found.iter().zip(words) {
        assert!(found.contains(words), "`{words}` in {found}");
    }
}

#[test]
fn one_line_of_a_site_is_enough() {
    let config = parse("[[site]]\norigins = [\"http://127.0.0.1:3000\"]").unwrap();
    assert_eq!(config.server.http_addresses().len(), 1);
    let [site] = &config.sites[..] else { panic!("one site") };
    assert!(site.cache.heuristic && !site.cache.store_set_cookie);
}

#[test]
fn nothing_to_serve_is_a_mistake() {
    is_refused(&problems(""), &["there is no site"]);
    is_refused(&problems("[[site]]\nhosts = [\"a\"]"), &["1:1 this site has nothing to serve"]);
}

#[test]
fn what_is_missed_is_no_news_where_something_can_not_be_read() {
    is_refused(&problems("[[site]]\norigin = [\"http://a\"]"), &["2:10 "]);
    is_refused(&problems("[[sit]]\norigins = []"), &["1:3 unknown key `sit`"]);
}

#[test]
fn each_host_has_one_site() {
    let text = "[[site]]\nhosts = [\"a\", \"b\"]\naliases = [\"c\"]\norigins = [\"http://x\"]\n\
                [[site]]\nhosts = [\"B\", \"*.c\"]\norigins = [\"http://x\"]\n[[site]]\nhosts = [\"c\"]\norigins = [\"http://x\"]\n";
    is_refused(
        &problems(text),
        &["6:10 `b` is a host of the first site already", "9:10 `c` is a host of the first site already"],
    );
    let text = "[[site]]\norigins = [\"http://x\"]\n[[site]]\norigins = [\"http://y\"]\n";
    is_refused(&problems(text), &["3:1 sites 1 and 2 are both for all other hosts"]);
}

#[test]
fn a_folder_of_the_sandbox_must_exist() {
    let text = "[server]\nsandbox = \"on\"\nsandbox_read = [\"/\", \"/no/such\"]\nsandbox_write = [\"/dev/null\"]\n";
    is_refused(
        &problems(&format!("{text}[[site]]\norigins = [\"http://a\"]\n")),
        &["3:22 /no/such, for the sandbox, is not a folder", "4:18 /dev/null, for the sandbox, is not a folder"],
    );
}

#[test]
fn a_rule_that_can_never_match_is_refused() {
    for (rule, words) in [
        ("path = [\"index.html\"]", "can never match"),
        ("prefix = [\"admin\"]", "can never match"),
        ("prefix = [\"/a?b\"]", "can never match"),
        ("path = [\"/a//b\"]", "can never match"),
        ("path = [\"/%61\"]", "can never match"),
        ("path = [\"/a/../b\"]", "can never match"),
        ("prefix = [\"/a/*\"]", "has wildcards"),
        ("extension = [\".css\"]", "can never match"),
        ("content_type = [\"html\"]", "can never match"),
        ("content_type = [\"text/html; charset=utf-8\"]", "can never match"),
        ("method = [\"get\"]", "methods are in capitals"),
        ("status = [100]", "not the status"),
        ("cookie = [\"[a\"]", "not a pattern"),
        ("query = []", "can never match"),
        ("path = [\"/a.css\"]\nextension = [\"js\"]", "can never match"),
        ("path = [\"/a.css\"]\nprefix = [\"/b\"]", "can never match"),
    ] {
        is_refused(&with_site(&format!("[[site.rule]]\n{rule}\nno_store = true\n")), &[words]);
    }
}

#[test]
fn a_rule_does_something_that_can_be_decided() {
    is_refused(&with_site("[[site.rule]]\npath = [\"/a\"]"), &["3:1 this rule has no effect"]);
    let late = with_site("[[site.rule]]\nstatus = [500]\nbypass = true\n");
    is_refused(&late, &["4:10 `bypass` applies before"]);
    is_refused(&with_site("[[site.rule]]\nttl_min = \"2h\"\nttl_max = \"1h\"\n"), &["4:11 `ttl_min` is longer"]);
}

#[test]
fn settings_without_what_they_are_about_are_refused() {
    is_refused(
        &with_site("dotfiles = true\nindex = [\"a.html\"]\n"),
        &["`dotfiles` has no effect", "`index` has no effect"],
    );
    is_refused(&with_site("[site.origin.tls]\nserver_name = \"x\"\n"), &["`tls` has no effect"]);
    is_refused(&with_site("aliases = [\"b\"]\n"), &["has an alias, but no host"]);
    is_refused(&with_site("[site.key]\nheaders = [\"Cookie\", \"X-A\"]\n"), &["4:12 `cookie` can't be part of a key"]);
    is_refused(&with_site("[cache]\ntier = \"1M\"\n"), &["4:8 a volume in memory can't have a tier"]);
    is_refused(&with_site("[cache]\nsize = \"1M\"\nentry_bytes_max = \"1M\"\n"), &["5:19 `entry_bytes_max` is 1M"]);
}

#[test]
fn what_is_named_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let shown = |path: &Path| path.display().to_string();
    let site = |root: &Path| problems(&format!("[[site]]\nroot = \"{}\"\n", shown(root)));
    assert_eq!(site(folder.path()), [""; 0]);
    is_refused(&site(&file), &["is not a folder"]);
    is_refused(&site(&folder.path().join("absent")), &["can't serve"]);
    let absent = shown(&folder.path().join("absent/file"));
    is_refused(&with_site(&format!("[cache]\npath = \"{absent}\"\n")), &["the folder of the volume"]);
    is_refused(&with_site(&format!("[server.access_log]\npath = \"{absent}\"\n")), &["the folder of the access log"]);
    let tls = format!("[[site]]\norigins = [\"https://a\"]\n[site.origin.tls]\nca_file = \"{absent}\"\n");
    is_refused(&problems(&tls), &["can't be read"]);
}

#[test]
fn who_administers_is_from_here_and_known() {
    is_refused(&with_site("[server.admin]\n"), &["has no address"]);
    is_refused(&with_site("[server.admin]\nlisten = \"127.0.0.1:1\"\n"), &["needs a token"]);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "secret").unwrap();
    let admin = |address: &str| {
        with_site(&format!("[server.admin]\nlisten = \"{address}\"\ntoken_file = \"{}\"\n", token.display()))
    };
    assert_eq!(admin("[::1]:8081"), [""; 0]);
    is_refused(&admin("0.0.0.0:8081"), &["other machines can reach"]);
}

#[test]
fn sockets_have_folders_and_proxies_have_addresses() {
    let socket = "[server]\nlisten = [\"unix:/nowhere/at/all/http.sock\"]\n";
    is_refused(&with_site(socket), &["the folder of the socket"]);
    is_refused(&with_site("[server]\nlisten = [\"unix:http.sock\"]\n"), &["is not the path of a socket"]);
    is_refused(&with_site("[server]\nsocket_mode = \"999\"\n"), &["is not a mode"]);
    let proxies = |proxy_protocol: &str, from: &str| {
        let listen = "[server]\nlisten = [\"10.0.0.1:80\", \"unix:/tmp/http.sock\"]";
        with_site(&format!("{listen}\nproxy_protocol = [{proxy_protocol}]\nproxy_protocol_from = [{from}]\n"))
    };
    assert_eq!(proxies("\"10.0.0.1:80\", \"unix:/tmp/http.sock\"", "\"10.0.0.7\""), [""; 0]);
    assert_eq!(proxies("\"unix:/tmp/http.sock\"", ""), [""; 0]);
    is_refused(&proxies("\"10.0.0.1:81\"", "\"10.0.0.7\""), &["which is not in `listen`"]);
    is_refused(&proxies("\"10.0.0.1:80\"", ""), &["nobody may connect to 10.0.0.1:80"]);
    is_refused(&proxies("", "\"10.0.0.7\""), &["`proxy_protocol_from` has no effect"]);
}

#[test]
fn a_site_of_a_thousand_rules_is_too_much() {
    let text = "[[site.rule]]\nno_store = true\n".repeat(129);
    is_refused(&with_site(&text), &["259:1 this site has 129 rules"]);
}

#[test]
fn a_cookie_of_keys_can_not_be_ignored() {
    for key in [
        "key = { ignore_cookies = [\"la*\"], cookies = [\"x\", \"lang\"] }\n",
        "preset = \"blog\"\nkey = { cookies = [\"_gid\"] }\n",
        "key = { cookies = [\"lang\"] }\n[[site.rule]]\nignore_cookies = [\"l*\"]\n",
    ] {
        let name = if key.contains("lang") { "lang" } else { "_gid" };
        is_refused(&with_site(key), &[&format!("the cookie `{name}` is part of the key, but also ignored")]);
    }
    let site = "[[site]]\norigins = [\"http://a\"]\npreset = \"blog\"\n";
    assert!(parse(&format!("{site}key = {{ cookies = [\"_gid\"], ignore_analytics = false }}\n")).is_ok());
}

#[test]
fn what_a_rule_is_not_for_has_to_be_named() {
    for name in ["unless_path", "unless_query", "unless_cookie"] {
        is_refused(
            &with_site(&format!("[[site.rule]]\nno_store = true\n{name} = []\n")),
            &[&format!("`{name}` is empty")],
        );
    }
    let late = "[[site.rule]]\nstatus = [200]\nignore_cookies = [\"sid\"]\n";
    is_refused(&with_site(late), &["`ignore_cookies` applies before the response"]);
}

#[test]
fn what_is_compressed_is_said_as_a_word_or_as_codings() {
    let codings = |text: &str| {
        let config = parse(&format!("[[site]]\norigins = [\"http://a\"]\n{text}")).unwrap();
        let compression = config.sites[0].compression();
        compression.map(|compression| compression::Compress(compression.codings).to_string())
    };
    assert_eq!(codings("").as_deref(), None);
    assert_eq!(codings("compress = false").as_deref(), None);
    assert_eq!(codings("compress = true").as_deref(), Some("br, zstd, gzip"));
    assert_eq!(codings("compress = [\"gzip\", \"br\"]").as_deref(), Some("br, gzip"));
    assert_eq!(codings("[[site.rule]]\ncompress = [\"zstd\"]").as_deref(), Some("zstd"));
    for (text, words) in [
        ("compress = \"br\"", "true, false or a list of codings"),
        ("compress = [\"deflate\"]", "`deflate` is not a coding"),
        ("compress = []", "`compress` is empty"),
        ("compression = {}", "`compression` has no effect without `compress`"),
        ("compress = true\ncompression = { bytes_min = \"2K\", bytes_max = \"1K\" }", "nothing would be compressed"),
        ("compress = true\ncompression = { bytes_max = \"2M\" }", "`2M` is out of range"),
        ("compress = true\ncompression = { types = [\"html\"] }", "can never match"),
    ] {
        is_refused(&with_site(text), &[words]);
    }
    let folder = tempfile::tempdir().unwrap();
    let root = format!("[[site]]\nroot = \"{}\"\ncompress = true\n", folder.path().display());
    is_refused(&problems(&root), &["`compress` has no effect without `origins`"]);
}

#[test]
fn a_rule_changes_no_field_that_frames_or_ages_a_message() {
    for name in
        ["Connection", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Content-Encoding", "Date", "Age", "Vary"]
    {
        for rule in [
            format!("set_headers = {{ {name} = \"1\" }}"),
            format!("add_headers = {{ {name} = \"1\" }}"),
            format!("remove_headers = [\"{name}\"]"),
        ] {
            let expected = format!("a rule can't change `{}`", name.to_ascii_lowercase());
            is_refused(&with_site(&format!("[[site.rule]]\n{rule}\n")), &[&expected]);
        }
    }
    for name in
        ["Host", "Expect", "Range", "If-None-Match", "Cache-Control", "Accept-Encoding", "X-Forwarded-For", "TE"]
    {
        let rule = format!(
            "[[site.rule]]\nset_request_headers = {{ {name} = \"1\" }}\nremove_request_headers = [\"{name}\"]\n"
        );
        is_refused(&with_site(&rule), &["a rule can't change", "a rule can't change"]);
    }
    for name in ["ETag", "Last-Modified"] {
        let expected = format!("a rule can't set `{}`", name.to_ascii_lowercase());
        for table in ["set_headers", "add_headers"] {
            is_refused(&with_site(&format!("[[site.rule]]\n{table} = {{ {name} = \"1\" }}\n")), &[&expected]);
        }
        assert_eq!(with_site(&format!("[[site.rule]]\nremove_headers = [\"{name}\"]\n")), [""; 0]);
    }
    let in_key = "key = { headers = [\"X-A\"], cookies = [\"b\"] }\n[[site.rule]]\nremove_request_headers = [\"X-A\", \"Cookie\"]\n";
    is_refused(&with_site(in_key), &["`x-a`", "`cookie`"]);
}

#[test]
fn a_choice_of_one_client_that_may_be_stored_for_all_is_a_warning() {
    let warnings = |text: &str| -> Vec<String> {
        let config = parse(&format!("[[site]]\norigins = [\"http://a\"]\n{text}")).unwrap();
        let place = |problem: &Problem| problem.place.as_ref().map(|place| (place.line, place.column));
        config.warnings.iter().map(|problem| format!("{:?} {}", place(problem).unwrap(), problem.message)).collect()
    };
    let rule =
        |conditions: &str| format!("[[site.rule]]\n{conditions}\nset_request_headers = {{ X-Device = \"phone\" }}\n");
    for (text, words) in [
        (
            rule("header = { User-Agent = \"*Mobile*\" }"),
            "(4, 10) this rule changes requests by the field `user-agent`",
        ),
        (rule("cookie = [\"mode=edit\"]"), "(4, 10) this rule changes requests by the cookie `mode=edit`"),
        (rule("unless_cookie = [\"wp-*\"]"), "(4, 17) this rule changes requests by the cookie `wp-*`"),
    ] {
        is_refused(&warnings(&text), &[words]);
    }
    let removes = "[[site.rule]]\nheader = { X-A = \"*\" }\nremove_request_headers = [\"Accept-Language\"]\n";
    is_refused(&warnings(removes), &["the field `x-a`"]);
    let key = "key = { headers = [\"X-A\"], cookies = [\"mode\"] }\n";
    let in_key = rule("header = { X-A = \"*\" }\ncookie = [\"mode=edit\"]");
    for sound in [
        format!("{key}{in_key}"),
        rule("path = [\"/a\"]"),
        rule("header = { X-A = \"*\" }\nno_store = true"),
        rule("header = { X-A = \"*\" }\nbypass = true"),
        "[[site.rule]]\nheader = { X-A = \"*\" }\nno_store = true\n".to_owned(),
    ] {
        assert_eq!(warnings(&sound), [""; 0], "{sound}");
    }
}

#[test]
fn a_redirect_that_can_not_be_is_refused() {
    for (rule, words) in [
        ("redirect = \"https://{host}/\"", "no valid host"),
        ("redirect = \"//b.example/\"", "not the target"),
        ("redirect = \"/new/{rest}\"", "this rule has none"),
        ("redirect = \"/{paht}\"", "`{paht}` is not known"),
        ("redirect = \"/\"\nredirect_status = 304", "304 is not the status of a redirect"),
        ("bypass = true\nredirect_status = 301", "`redirect_status` has no effect"),
        ("set_headers = { X-A = \"b\\r\\nc\" }", "can't be the value"),
    ] {
        is_refused(&with_site(&format!("[[site.rule]]\n{rule}\n")), &[words]);
    }
    let late = "[[site.rule]]\nstatus = [404]\nredirect = \"/\"\nset_request_headers = { X-A = \"1\" }\n";
    is_refused(&with_site(late), &["`redirect` applies before", "`set_request_headers` applies before"]);
}

#[test]
fn error_pages_are_for_errors() {
    for (text, words) in [
        ("error_page = { 200 = \"/x\" }", "200 is not the status of an error"),
        ("error_page = { 404 = \"x\" }", "`x` is not a path"),
        ("intercept_errors = true", "`intercept_errors` has no effect without `error_page`"),
    ] {
        is_refused(&with_site(&format!("{text}\n")), &[words]);
    }
}

#[test]
fn the_languages_of_a_site_are_tags_each_once() {
    for (text, words) in [
        ("[]", "`accept_language` is empty"),
        ("[\"de\", \"DE\"]", "has DE twice"),
        ("[\"de_AT\"]", "`de_AT` is not a language"),
        ("[\"*\"]", "`*` is not a language"),
    ] {
        is_refused(&with_site(&format!("accept_language = {text}\n")), &[words]);
    }
}

#[test]
fn limits_that_have_no_effect_are_refused() {
    is_refused(&with_site("[server.limits]\nrequest_burst = 5"), &["`request_burst` has no effect"]);
    is_refused(
        &with_site("[site.limits]\nrequest_burst = 5\norigin_queue = 5\norigin_wait = \"1s\""),
        &["`request_burst` has no effect", "`origin_queue` has no effect", "`origin_wait` has no effect"],
    );
    let folder = tempfile::tempdir().unwrap();
    let site = format!("[[site]]\nroot = {:?}\n[site.limits]\norigin_requests = 5", folder.path());
    is_refused(&problems(&site), &["`origin_requests` has no effect without `origins`"]);
    assert!(with_site("[site.limits]\norigin_requests = 5\norigin_queue = 0").is_empty());
}
