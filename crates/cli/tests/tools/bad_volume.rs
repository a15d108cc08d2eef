//! The volume is missing, or the file is not a volume: each tool reports it with exit code 3, and neither creates nor changes a
//! file.

use crate::command::Volume;

const TOOLS: [&[&str]; 5] = [&["put", "key", "-"], &["get", "key"], &["rm", "key"], &["ls"], &["stat"]];

#[test]
fn no_tool_creates_a_volume() {
    let volume = Volume::absent();
    for words in TOOLS {
        let ended = volume.run(words);
        assert_eq!((ended.code, ended.text()), (3, ""), "{words:?}");
        assert!(ended.stderr.contains("site.eye"), "{words:?} names the path: {}", ended.stderr);
        assert!(!volume.path().exists(), "{words:?} left a file behind");
    }
}

#[test]
fn a_foreign_file_is_refused_and_not_changed() {
    let volume = Volume::absent();
    for foreign in [b"".to_vec(), b"a letter".to_vec(), vec![0; 1 << 20], vec![0xff; 1 << 20]] {
        std::fs::write(volume.path(), &foreign).unwrap();
        for words in TOOLS {
            let ended = volume.run(words);
            assert_eq!((ended.code, ended.text()), (3, ""), "{words:?}");
            assert!(ended.stderr.contains("site.eye"), "{words:?} names the path: {}", ended.stderr);
        }
        assert_eq!(std::fs::read(volume.path()).unwrap(), foreign);
    }
}

#[test]
fn a_folder_is_not_a_volume() {
    let volume = Volume::absent();
    std::fs::create_dir(volume.path()).unwrap();
    for words in TOOLS {
        assert_eq!(volume.run(words).code, 3, "{words:?}");
    }
}
