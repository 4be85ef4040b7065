//! Columns of text, as wide as what is in them.

use super::out::cut;

/// Lays rows out in columns, the last of which takes what is left of `width`.
pub(super) fn lay_out(rows: &[Vec<String>], width: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, wide) in row.iter().zip(&widths) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(&format!("{cell:<wide$}"));
        }
        text.push_str(&cut(line.trim_end(), width));
        text.push('\n');
    }
    text
}
