//! Paths of evidence: relative, of plain parts, the same to every reader.

/// The longest path, in bytes.
pub const MAX_PATH: usize = 1024;

/// Refuses a path that could name something else than a file below the folder that was given.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn check(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_PATH {
        return Err("a path is empty or longer than 1024 bytes");
    }
    if path.starts_with('/') {
        return Err("a path is absolute");
    }
    if path.contains('\\') {
        return Err("a path has a backslash");
    }
    if path.chars().any(char::is_control) {
        return Err("a path has control characters");
    }
    for part in path.split('/') {
        match part {
            "" => return Err("a path has an empty part"),
            "." | ".." => return Err("a path leaves its folder, or could"),
            _ => {}
        }
    }
    Ok(())
}
