//! HTML pages that open without a network.
//!
//! Everything is in a page: style, drawings, and a few lines of script that zoom into a flame
//! graph. Nothing is fetched. It follows the reader's light or dark scheme.

/// A whole page around `body`, which is HTML.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n<script>\n{}</script>\n</body>\n</html>\n",
        escape(title),
        include_str!("html/style.css"),
        include_str!("html/zoom.js"),
    )
}

/// Text as it may stand in HTML, in an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
