//! The normal form of a path (RFC 3986, section 6.2.2), and its decoded escapes.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::error::KeyError;

/// Appends the normal form of a path. It begins with a slash, and its normal form is itself.
pub(super) fn push_path(key: &mut String, path: &str) -> Result<(), KeyError> {
    if !path.starts_with('/') {
        return Err(KeyError::NoPath);
    }
    let path = unescaped(path)?;
    if !path.contains("/.") {
        key.push_str(&path);
        return Ok(());
    }
    let start = key.len();
    let mut segments = path[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    let parent = key[start..].rfind('/').unwrap_or(0);
                    key.truncate(start + parent);
                }
                // `.` or `..` at the end names a folder.
                if is_last {
                    key.push('/');
                }
            }
            name => {
                key.push('/');
                key.push_str(name);
            }
        }
    }
    Ok(())
}

/// The normal form of a path.
pub(crate) fn normal_path(path: &str) -> Result<String, KeyError> {
    let mut normal = String::new();
    push_path(&mut normal, path).map(|()| normal)
}

/// Decodes escapes of unreserved characters, and writes other escapes in capitals. A percent sign that begins no escape is an
/// error, because programs would read it differently.
pub(crate) fn unescaped(path: &str) -> Result<Cow<'_, str>, KeyError> {
    if !path.contains('%') {
        return Ok(Cow::Borrowed(path));
    }
    let mut pieces = path.split('%');
    let mut normal = String::with_capacity(path.len());
    normal.extend(pieces.next());
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).ok_or(KeyError::Path)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(KeyError::Path);
        }
        let byte = u8::from_str_radix(digits, 16).map_err(|_| KeyError::Path)?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            normal.push(char::from(byte));
        } else {
            normal.push('%');
            normal.push_str(&digits.to_ascii_uppercase());
        }
        normal.push_str(rest);
    }
    Ok(Cow::Owned(normal))
}

/// Decodes all escapes, and replaces bytes that aren't UTF-8. For patterns, never for keys.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(path: &str) -> Result<String, KeyError> {
        let mut key = "http://h".to_owned();
        push_path(&mut key, path)?;
        Ok(key["http://h".len()..].to_owned())
    }

    #[test]
    fn equal_paths_have_one_form() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b.c", "/a/b.c"),
            ("/%7euser/%2D%5f", "/~user/-_"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a%2fb", "/a%2Fb"),
            ("/a/./b/../c", "/a/c"),
            ("/a/%2e%2E/b", "/b"),
            ("/..", "/"),
            ("/../../a", "/a"),
            ("/a/..", "/"),
            ("/a/.", "/a/"),
            ("/a/b/..", "/a/"),
            ("/a//../b", "/a/b"),
            ("/.//evil", "//evil"),
            ("/.well-known/x", "/.well-known/x"),
            ("/...", "/..."),
            ("/a//b/", "/a//b/"),
            ("/%25%34%31", "/%2541"),
        ] {
            assert_eq!(normal(path).as_deref(), Ok(expected), "{path}");
            assert_eq!(normal(expected).as_deref(), Ok(expected), "{path} twice");
        }
    }

    #[test]
    fn broken_escapes_are_refused() {
        for path in ["/%", "/a%4", "/%zz", "/%%41", "/%+1", "/%\u{fc}1"] {
            assert_eq!(normal(path), Err(KeyError::Path), "{path}");
        }
        assert_eq!(normal("*"), Err(KeyError::NoPath));
    }
}
