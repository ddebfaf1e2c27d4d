//! A plan in XML and in YAML: the tree that JSON shows, in other words.

/// A value as the writer of JSON has put it down.
enum Value {
    /// In quotes, as JSON escapes it.
    Text(String),
    /// A number.
    Bare(String),
    List(Vec<Value>),
    Fields(Vec<(String, Value)>),
}

/// Reads what this module's kin have written, and nothing else.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        let blank = |c: char| c.is_ascii_whitespace() || c == ',' || c == ':';
        self.rest = self.rest.trim_start_matches(blank);
    }

    fn take(&mut self, sign: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// What stands in quotes, as it is escaped.
    fn text(&mut self) -> &'a str {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.get(1..).unwrap_or_default();
        text
    }

    /// Plans are as deep as queries are nested, which the parser bounds.
    fn value(&mut self) -> Value {
        if self.take('"') {
            return Value::Text(self.text().to_owned());
        }
        if self.take('[') {
            let mut items = Vec::new();
            while !self.rest.is_empty() && !self.take(']') {
                items.push(self.value());
            }
            return Value::List(items);
        }
        if self.take('{') {
            let mut fields = Vec::new();
            while !self.rest.is_empty() && !self.take('}') {
                self.take('"');
                let name = self.text().to_owned();
                fields.push((name, self.value()));
            }
            return Value::Fields(fields);
        }
        let end = self
            .rest
            .find(|c: char| c == ',' || c == '}' || c == ']' || c.is_whitespace());
        let (bare, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()).max(1));
        self.rest = rest;
        Value::Bare(bare.to_owned())
    }
}

fn read(json: &str) -> Value {
    Reader { rest: json }.value()
}

/// The text that a JSON string stands for.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('u') => {
                    let code: String = chars.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&code, 16).ok();
                    out.extend(code.and_then(char::from_u32));
                }
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

/// `json`: the whole document.
pub(super) fn xml(json: &str) -> String {
    let mut out = String::from("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n");
    if let Value::List(queries) = read(json) {
        for query in &queries {
            element("Query", query, 1, &mut out);
        }
    }
    out.push_str("</explain>");
    out
}

/// An element's name: letters, digits and few signs.
fn tag(name: &str) -> String {
    let sign = |c: char| match c {
        ' ' => '-',
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
        _ => '_',
    };
    name.chars().map(sign).collect()
}

fn element(name: &str, value: &Value, depth: usize, out: &mut String) {
    let (pad, tag) = ("  ".repeat(depth), tag(name));
    match value {
        Value::Text(text) => {
            let text = unescaped(text);
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let text = text.replace('>', "&gt;").replace('\r', "&#x0d;");
            out.push_str(&format!("{pad}<{tag}>{text}</{tag}>\n"));
        }
        Value::Bare(text) => out.push_str(&format!("{pad}<{tag}>{text}</{tag}>\n")),
        Value::List(items) => {
            out.push_str(&format!("{pad}<{tag}>\n"));
            let one = match name {
                "Plans" => "Plan",
                "Triggers" => "Trigger",
                _ => "Item",
            };
            for item in items {
                element(one, item, depth + 1, out);
            }
            out.push_str(&format!("{pad}</{tag}>\n"));
        }
        Value::Fields(fields) => {
            out.push_str(&format!("{pad}<{tag}>\n"));
            for (name, value) in fields {
                element(name, value, depth + 1, out);
            }
            out.push_str(&format!("{pad}</{tag}>\n"));
        }
    }
}

/// `json`: the whole document.
pub(super) fn yaml(json: &str) -> String {
    let mut out = String::new();
    if let Value::List(queries) = read(json) {
        items(&queries, 0, &mut out);
    }
    out.trim_end_matches('\n').to_owned()
}

fn items(list: &[Value], depth: usize, out: &mut String) {
    for item in list {
        let pad = "  ".repeat(depth);
        match item {
            Value::Fields(fields) => {
                out.push_str(&format!("{pad}- "));
                entries(fields, depth + 1, true, out);
            }
            Value::Text(text) => out.push_str(&format!("{pad}- \"{text}\"\n")),
            Value::Bare(text) => out.push_str(&format!("{pad}- {text}\n")),
            Value::List(inner) => items(inner, depth + 1, out),
        }
    }
}

/// `begun`: the first stands behind a dash.
fn entries(fields: &[(String, Value)], depth: usize, begun: bool, out: &mut String) {
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 || !begun {
            out.push_str(&"  ".repeat(depth));
        }
        match value {
            Value::Text(text) => out.push_str(&format!("{name}: \"{text}\"\n")),
            Value::Bare(text) => out.push_str(&format!("{name}: {text}\n")),
            Value::List(list) => {
                out.push_str(&format!("{name}: \n"));
                items(list, depth + 1, out);
            }
            Value::Fields(inner) => {
                out.push_str(&format!("{name}: \n"));
                entries(inner, depth + 1, false, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{xml, yaml};

    const PLAN: &str = "[\n  {\n    \"Plan\": {\n      \"Node Type\": \"Limit\",\n      \
                        \"Total Cost\": 1.50,\n      \"Filter\": \"(a < \\\"b\\\")\",\n      \
                        \"Plans\": [\n        {\n          \"Node Type\": \"Seq Scan\"\n        }\n      \
                        ]\n    },\n    \"Planning Time\": 0.100\n  }\n]";

    #[test]
    fn a_plan_is_the_same_in_yaml() {
        let expected = "- Plan: \n    Node Type: \"Limit\"\n    Total Cost: 1.50\n    \
                        Filter: \"(a < \\\"b\\\")\"\n    Plans: \n      - Node Type: \"Seq Scan\"\n  \
                        Planning Time: 0.100";
        assert_eq!(yaml(PLAN), expected);
    }

    #[test]
    fn a_plan_is_the_same_in_xml() {
        let expected = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    \
                        <Plan>\n      <Node-Type>Limit</Node-Type>\n      \
                        <Total-Cost>1.50</Total-Cost>\n      <Filter>(a &lt; \"b\")</Filter>\n      \
                        <Plans>\n        <Plan>\n          <Node-Type>Seq Scan</Node-Type>\n        \
                        </Plan>\n      </Plans>\n    </Plan>\n    \
                        <Planning-Time>0.100</Planning-Time>\n  </Query>\n</explain>";
        assert_eq!(xml(PLAN), expected);
    }
}
