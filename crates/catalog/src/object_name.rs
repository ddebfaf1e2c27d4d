//! Names that PostgreSQL chooses for objects that get none.

/// `name1_name2_label`, cut to what fits by shortening the longer of the first two.
pub fn object_name(name1: &str, name2: &str, label: &str) -> String {
    const MOST: usize = 63;
    let overhead = label.len() + 1 + usize::from(!name2.is_empty());
    let (mut len1, mut len2) = (name1.len(), name2.len());
    while len1 + len2 + overhead > MOST {
        if len1 > len2 { len1 -= 1 } else { len2 -= 1 }
    }
    let cut = |name: &str, len: usize| {
        let end = (0..=len)
            .rev()
            .find(|&i| name.is_char_boundary(i))
            .unwrap_or(0);
        name[..end].to_string()
    };
    let mut whole = cut(name1, len1);
    if !name2.is_empty() {
        whole = format!("{whole}_{}", cut(name2, len2));
    }
    format!("{whole}_{label}")
}
