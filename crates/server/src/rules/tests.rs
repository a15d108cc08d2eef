use http::Request;
use http::header::CONTENT_TYPE;

use super::*;
use crate::config::{Config, parse};
use crate::key::{KeyRules, RequestHost, Scheme};

fn config(site: &str) -> Config {
    parse(&format!("[[site]]\norigins = [\"http://a\"]\n{site}")).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// The result of a request: the rule that bypasses, else the effects on a response of this status and type.
fn ask(
    config: &Config,
    target: &str,
    fields: &[(&'static str, &'static str)],
    status: u16,
    media: &str,
) -> Result<Overrides, String> {
    let mut request = Request::builder().uri(target).header("host", "h");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap().into_parts().0;
    let rules = Rules::of(&config.sites[0]);
    let key = CacheKey::of(&KeyRules::of(&config.sites[0]), &RequestHost::parse("h").unwrap(), Scheme::Http, &request)
        .unwrap();
    let decision = rules.of_request(&key, &request);
    if let Some(rule) = decision.bypass {
        return Err(rule.to_owned());
    }
    let response = HeaderMap::from_iter([(CONTENT_TYPE, media.parse().unwrap())]);
    Ok(decision.of_response(StatusCode::from_u16(status).unwrap(), &response).overrides)
}

fn default_ttl(config: &Config, target: &str, status: u16, media: &str) -> Option<u64> {
    ask(config, target, &[], status, media).unwrap().default_ttl.map(|ttl| ttl.as_secs())
}

#[test]
fn without_a_rule_nothing_is_overridden_but_the_defaults_stand() {
    let expected = Overrides {
        heuristic: Some(true),
        ignore_reload: Some(false),
        store_set_cookie: Some(false),
        ..Overrides::default()
    };
    assert_eq!(ask(&config(""), "/", &[], 200, "text/html"), Ok(expected));
}

#[test]
fn all_rules_that_match_apply_and_the_later_one_wins() {
    let config = config(
        "[site.cache]\ndefault_ttl = \"1s\"\nstale_if_error = \"7s\"\n\
         [[site.rule]]\nprefix = [\"/a\"]\ndefault_ttl = \"2s\"\nttl_max = \"9s\"\n\
         [[site.rule]]\npath = [\"*.html\"]\ndefault_ttl = \"3s\"\nstale_if_error = \"0s\"\n",
    );
    let both = ask(&config, "/a/b.html", &[], 200, "text/html").unwrap();
    let seconds = Duration::from_secs;
    assert_eq!((both.default_ttl, both.ttl_max), (Some(seconds(3)), Some(seconds(9))));
    assert_eq!(both.stale_if_error, Some(Duration::ZERO));
    assert_eq!(default_ttl(&config, "/a/b", 200, "text/html"), Some(2));
    assert_eq!(default_ttl(&config, "/b", 200, "text/html"), Some(1));
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let config = config(
        "[[site.rule]]\nprefix = [\"/a/\", \"/b/\"]\nextension = [\"css\", \"JS\"]\nmethod = [\"GET\"]\n\
         header = { \"X-One\" = \"1*\", \"X-Two\" = \"*\" }\nstatus = [200, \"4xx\"]\ncontent_type = [\"text/*\"]\n\
         default_ttl = \"5s\"\n",
    );
    let fields = [("x-one", "12"), ("x-two", "")];
    let ttl = |target: &str, fields: &[(&'static str, &'static str)], status, media: &str| {
        ask(&config, target, fields, status, media).unwrap().default_ttl.is_some()
    };
    assert!(ttl("/a/x.css", &fields, 200, "text/css"));
    assert!(ttl("/b/x.Js?y", &fields, 404, "Text/HTML; charset=utf-8"));
    assert!(!ttl("/c/x.css", &fields, 200, "text/css"), "another prefix");
    assert!(!ttl("/a/x.html", &fields, 200, "text/css"), "another extension");
    assert!(!ttl("/a/css", &fields, 200, "text/css"), "no extension");
    assert!(!ttl("/a/x.css", &fields[..1], 200, "text/css"), "a field is missing");
    assert!(!ttl("/a/x.css", &fields, 301, "text/css"), "another status");
    assert!(!ttl("/a/x.css", &fields, 200, "image/png"), "another type");
}

#[test]
fn a_client_can_not_evade_a_bypass() {
    let config = config(
        "[[site.rule]]\nname = \"admin\"\nprefix = [\"/admin/\"]\nbypass = true\n\
         [[site.rule]]\nname = \"preview\"\nquery = [\"preview=true\", \"nonce\"]\nbypass = true\n\
         [[site.rule]]\nname = \"user\"\ncookie = [\"user_*\", \"mode=edit\"]\nbypass = true\n",
    );
    let by = |target: &str, cookie: &'static str| ask(&config, target, &[("cookie", cookie)], 200, "a/b").err();
    for target in ["/admin/", "//admin/x", "/%61dmin/x", "/admin%2Fx", "/x/../admin/", "/x/%2e%2e//admin/"] {
        assert_eq!(by(target, "").as_deref(), Some("admin"), "{target}");
    }
    for target in ["/?preview=true", "/?a&preview=%74rue", "/?%6eonce=1", "/?nonce"] {
        assert_eq!(by(target, "").as_deref(), Some("preview"), "{target}");
    }
    for cookie in ["user_1=x", "a=b; user_=", "a=b;user_2", "mode=edit", "a=\"x\"; mode = edit"] {
        assert_eq!(by("/", cookie).as_deref(), Some("user"), "{cookie}");
    }
    for (target, cookie) in [("/admin", ""), ("/?preview=false", ""), ("/?nonces=1", ""), ("/", "mode=read; auser_=1")]
    {
        assert_eq!(by(target, cookie), None, "{target} {cookie}");
    }
}

#[test]
fn a_rule_does_not_match_what_it_excludes() {
    let config = config(
        "[[site.rule]]\nprefix = [\"/a/\"]\nunless_path = [\"/a/b/*\"]\nunless_query = [\"do*\", \"x=1\"]\n\
         unless_cookie = [\"login_*\", \"mode=edit\"]\nbypass = true\n",
    );
    let by = |target: &str, cookie: &'static str| ask(&config, target, &[("cookie", cookie)], 200, "a/b").is_err();
    for (target, cookie) in [("/a/", ""), ("/a/b", "a=b"), ("/a/?x=2&d", "mode=read; xlogin_=1")] {
        assert!(by(target, cookie), "{target} {cookie}");
    }
    for (target, cookie) in [
        ("/a/b/c", ""),
        ("//a//%62/c", ""),
        ("/a/?%64o=1", ""),
        ("/a/?y&x=1", ""),
        ("/a/", "a=b; login_1=x"),
        ("/a/", "login_"),
        ("/a/", "mode=edit"),
        ("/c", ""),
    ] {
        assert!(!by(target, cookie), "{target} {cookie}");
    }
}

#[test]
fn a_later_rule_can_take_a_bypass_back() {
    let config = config(
        "[[site.rule]]\nprefix = [\"/api/\"]\nbypass = true\n[[site.rule]]\nprefix = [\"/api/public/\"]\nbypass = false\n",
    );
    assert_eq!(ask(&config, "/api/x", &[], 200, "a/b"), Err("rule-1".to_owned()));
    assert!(ask(&config, "/api/public/x", &[], 200, "a/b").is_ok());
}

#[test]
fn a_status_goes_before_its_class_and_a_rule_before_the_site() {
    let config = config(
        "[site.cache]\nnegative_ttl = { 404 = \"4s\", 4xx = \"9s\", 5xx = \"1s\" }\n\
         [[site.rule]]\nprefix = [\"/slow/\"]\nnegative_ttl = { 4xx = \"60s\" }\n",
    );
    let ttl =
        |target: &str, status| ask(&config, target, &[], status, "a/b").unwrap().negative_ttl.map(|ttl| ttl.as_secs());
    assert_eq!((ttl("/", 404), ttl("/", 410), ttl("/", 502), ttl("/", 200)), (Some(4), Some(9), Some(1), None));
    assert_eq!((ttl("/slow/", 404), ttl("/slow/", 500)), (Some(60), Some(1)));
}

#[test]
fn fields_and_tags_of_all_rules_add_up() {
    let config = config(
        "[site.cache]\nstrip_response = [\"Server\"]\n[[site.rule]]\nname = \"a\"\ntags = [\"one\"]\nstrip_response = [\"X-A\"]\n\
         [[site.rule]]\nstatus = [404]\ntags = [\"gone\"]\nstrip_response = [\"X-Gone\"]\n[[site.rule]]\nname = \"c\"\nignore_reload = true\ntags = [\"two\"]\n",
    );
    let request = Request::builder().uri("/").body(()).unwrap().into_parts().0;
    let rules = Rules::of(&config.sites[0]);
    let key = CacheKey::of(&KeyRules::of(&config.sites[0]), &RequestHost::parse("h").unwrap(), Scheme::Http, &request)
        .unwrap();
    let decision = rules.of_request(&key, &request);
    assert!(decision.ignore_reload);
    let applied = decision.of_response(StatusCode::OK, &HeaderMap::new());
    assert_eq!(applied.tags().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(applied.stripped().collect::<Vec<_>>(), ["server", "x-a"]);
    assert_eq!(applied.names().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(decision.strippable().collect::<Vec<_>>(), ["server", "x-a", "x-gone"]);
}

#[test]
fn one_line_caches_a_blog_except_for_visitors_with_a_session() {
    let config = config("preset = \"blog\"\n");
    assert_eq!(default_ttl(&config, "/post/1", 200, "text/html; charset=utf-8"), Some(60));
    assert_eq!(default_ttl(&config, "/a.png", 200, "image/png"), None);
    assert_eq!(default_ttl(&config, "/post/1", 500, "text/html"), None);
    for session in ["PHPSESSID=1", "_ga=1; sessionid=2", "connect.sid=3", "laravel_session=4", "comment_author_ab=me"] {
        assert_eq!(
            ask(&config, "/", &[("cookie", session)], 200, "text/html"),
            Err("blog-session".to_owned()),
            "{session}"
        );
    }
    let tracked = [("cookie", "_ga=GA1.2; _fbp=fb.1; _hjSession_1=x; cookieconsent=yes")];
    assert!(
        ask(&config, "/", &tracked, 200, "text/html").is_ok(),
        "a visitor with analytics cookies gets the shared pages"
    );
}

#[test]
fn wordpress_is_cacheable_except_for_known_visitors() {
    let config = config("preset = \"wordpress\"\n");
    assert_eq!(default_ttl(&config, "/2026/11/hello/", 200, "text/html; charset=UTF-8"), Some(60));
    assert_eq!(default_ttl(&config, "/wp-content/themes/x/style.css?ver=1", 200, "text/css"), Some(86_400));
    for target in
        ["/wp-admin/", "/wp-admin", "/blog/wp-login.php", "/?preview=true", "/wp-admin/admin-ajax.php", "/cart/"]
    {
        assert!(ask(&config, target, &[], 200, "text/html").is_err(), "{target}");
    }
    for cookie in ["wordpress_logged_in_ab=me", "wp-settings-1=x", "wp-postpass_x=y", "comment_author_x=y"] {
        assert!(ask(&config, "/", &[("cookie", cookie)], 200, "text/html").is_err(), "{cookie}");
    }
    assert!(ask(&config, "/", &[("cookie", "wordpress_test_cookie=WP+Cookie+check")], 200, "text/html").is_ok());
}

#[test]
fn a_wiki_is_cacheable_as_it_says_except_for_known_visitors_and_edits() {
    let config = config("preset = \"mediawiki\"\n");
    assert_eq!(default_ttl(&config, "/skins/Vector/logo.png", 200, "image/png"), Some(86_400));
    for target in ["/index.php/Main_Page", "/wiki/Help:Special", "/index.php?title=A&action=history"] {
        assert!(ask(&config, target, &[], 200, "text/html").is_ok(), "{target}");
        assert_eq!(default_ttl(&config, target, 200, "text/html"), None, "the wiki says for how long");
    }
    for target in [
        "/index.php/Special:UserLogin",
        "/wiki/Special%3AUserLogout",
        "/index.php?title=Special:RecentChanges",
        "/index.php?title=A&action=edit",
    ] {
        assert!(ask(&config, target, &[], 200, "text/html").is_err(), "{target}");
    }
    for cookie in ["wikidb_session=1", "wiki_mw_UserID=2", "wikidbToken=3"] {
        assert!(ask(&config, "/", &[("cookie", cookie)], 200, "text/html").is_err(), "{cookie}");
    }
    assert!(
        ask(&config, "/", &[("cookie", "wikidbUserName=Ada")], 200, "text/html").is_ok(),
        "it outlives the session"
    );
}

#[test]
fn drupal_is_cacheable_as_it_says_except_for_known_visitors_and_edits() {
    let config = config("preset = \"drupal\"\n");
    assert_eq!(default_ttl(&config, "/sites/default/files/a.png", 200, "image/png"), Some(86_400));
    for target in ["/node/1", "/users/ada", "/?q=node/1", "/administrators"] {
        assert!(ask(&config, target, &[], 200, "text/html").is_ok(), "{target}");
        assert_eq!(default_ttl(&config, target, 200, "text/html"), None, "Drupal says for how long");
    }
    for target in ["/user/login", "/de/user/logout", "/node/1/edit", "/admin", "/?q=user/login", "/system/files/a.pdf"]
    {
        assert!(ask(&config, target, &[], 200, "text/html").is_err(), "{target}");
    }
    for cookie in ["SESSabc=1", "SSESSabc=1", "NO_CACHE=Y"] {
        assert!(ask(&config, "/", &[("cookie", cookie)], 200, "text/html").is_err(), "{cookie}");
    }
}

#[test]
fn files_are_kept_by_their_type() {
    let config = config("preset = \"static\"\n");
    assert_eq!(default_ttl(&config, "/logo.PNG", 200, "image/png"), Some(30 * 86_400));
    assert_eq!(default_ttl(&config, "/app.js", 200, "text/javascript"), Some(86_400));
    assert_eq!(default_ttl(&config, "/", 200, "text/html"), Some(300));
    assert_eq!(default_ttl(&config, "/logo.png", 404, "text/html"), Some(300));
}
