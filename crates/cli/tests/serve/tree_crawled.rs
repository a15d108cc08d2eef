//! A client crawls a tree of files with all kinds of names, sizes and encodings twice, from a folder and from an origin. All bytes
//! are those of the files, and the second time all replies come from the volume.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::common::client::Reply;
use crate::common::command::eyewall;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

const FOLDERS: [&str; 6] =
    ["", "plain/", "with blanks/", "\u{fc}/\u{65e5}\u{672c}/", "100%/", "deep/and/deeper/and/deeper still/"];

const NAMES: [&[u8]; 18] = [
    b"page.html",
    b"style.css",
    b"noextension",
    b"UPPER.TXT",
    b"two words.txt",
    b"plus+and&equals=.txt",
    b"hash#question?.txt",
    b"percent%41.txt",
    b"quotes'\"<>.txt",
    b"back\\slash.txt",
    b"semicolon;colon:at@.txt",
    b"brackets[1]{2}(3).txt",
    b"dots..in.it.",
    b"~tilde!$*,.txt",
    b"line\nbreak.txt",
    b"latin1-\xe9.txt",
    "\u{e9}\u{308}\u{1f300}.txt".as_bytes(),
    b"packed.txt.gz",
];

/// Characters that a URL must escape, and all that it may escape.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// Sizes around those that are read, buffered and mapped at once.
const SIZES: [usize; 13] = [0, 1, 2, 100, 4095, 4096, 4097, 8192, 16_383, 16_384, 65_535, 65_536, 65_537];
const LARGE: [usize; 3] = [262_144, 1_000_001, 1_900_000];

/// Beginnings of text files: nothing, marks of UTF-8 and UTF-16, Latin-1, and the first bytes of gzip.
const BEGINNINGS: [&[u8]; 5] =
    [b"", b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", b"\xff\xfeg\0r\0", b"gr\xfc\xdfe", b"\x1f\x8b\x08"];

/// Files of a folder from this size on are never stored.
const SENT_FROM_FILE: usize = 256 << 10;

/// Files, each with the path of its URL.
struct Tree {
    site: Site,
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    fn new() -> Self {
        let mut tree = Self { site: Site::new(), files: BTreeMap::new() };
        let mut lengths = LARGE.into_iter().chain(SIZES.into_iter().cycle());
        let mut folders = String::new();
        for folder in FOLDERS {
            let mut list = String::new();
            for (number, name) in NAMES.into_iter().enumerate() {
                let beginning = BEGINNINGS[number % BEGINNINGS.len()];
                let bytes = bytes_like(beginning, lengths.next().expect("they go on"), tree.files.len());
                let path = tree.write(&[folder.as_bytes(), name].concat(), bytes);
                list.extend(["<a href=\"", &path, "\">\n"]);
            }
            if folder.is_empty() {
                folders = list;
            } else {
                let index = tree.write(format!("{folder}index.html").as_bytes(), list.into_bytes());
                folders.extend(["<a href=\"", index.trim_end_matches("index.html"), "\">\n"]);
            }
        }
        tree.write(b"index.html", folders.into_bytes());
        tree
    }

    /// Writes a file, and returns the path of its URL.
    fn write(&mut self, name: &[u8], bytes: Vec<u8>) -> String {
        let file = self.site.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(file.parent().expect("it has a folder")).expect("folders can be made");
        fs::write(file, &bytes).expect("a file can be written");
        let path = format!("/{}", percent_encode(name, ESCAPED));
        self.files.insert(path.strip_suffix("index.html").unwrap_or(&path).to_owned(), bytes);
        path
    }

    /// Follows all links, beginning at the index.
    fn crawl(&self, server: &Server, is_second: bool) {
        let mut seen = BTreeSet::new();
        let mut todo = VecDeque::from(["/".to_owned()]);
        while let Some(path) = todo.pop_front() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let reply = server.get(&path);
            let bytes = self.files.get(&path).unwrap_or_else(|| panic!("{path} is no file of ours"));
            assert_eq!(reply.status, 200, "{path}");
            assert!(reply.is_whole && reply.body == *bytes, "{path}: {} for {} bytes", reply.body.len(), bytes.len());
            let is_from_file = bytes.len() >= SENT_FROM_FILE && reply.cache().ends_with("detail=sendfile");
            assert!(reply.is_hit() || is_from_file || !is_second, "{path}: {}", reply.cache());
            if path.ends_with('/') {
                todo.extend(reply.text().split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
        assert_eq!(seen.len(), self.files.len());
    }
}

/// This beginning, and then noise that is the same for the same seed.
fn bytes_like(beginning: &[u8], length: usize, seed: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ seed as u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    beginning.iter().copied().chain(noise).take(length).collect()
}

/// With room for the largest of the files.
fn served(source: &str, what: impl AsRef<OsStr>) -> Server {
    Server::spawn(eyewall().args(["serve", "--listen", "127.0.0.1:0", "--size", "32M", source]).arg(what))
}

#[test]
fn from_a_folder() {
    let tree = Tree::new();
    let server = served("--root", tree.site.path());
    // The index was written last. When it is old enough to be stored, so are all others.
    server.get_until("/", Reply::is_hit);
    tree.crawl(&server, false);
    tree.crawl(&server, true);
}

#[test]
fn from_an_origin() {
    let tree = Tree::new();
    let files = tree.files.clone();
    let origin = Origin::answering(move |asked| match files.get(&asked.target) {
        Some(bytes) => (200, "Cache-Control: max-age=3600".to_owned(), bytes.clone()),
        None => (404, String::new(), Vec::new()),
    });
    let server = served("--origin", origin.url());
    tree.crawl(&server, false);
    tree.crawl(&server, true);
    assert_eq!(origin.asked().len(), tree.files.len(), "each was asked for once");
}
