//! PostgreSQL's hash of bytes: Bob Jenkins' lookup3, 64 bits of it, with a seed.
//!
//! Source: Bob Jenkins, "lookup3.c", May 2006, <https://burtleburtle.net/bob/c/lookup3.c>.

/// The word that an integer of any width is hashed as.
pub fn folded(v: i64) -> u32 {
    let (low, high) = (v as u32, (v >> 32) as u32);
    low ^ if v >= 0 { high } else { !high }
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u64 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    u64::from(b) << 32 | u64::from(c)
}

fn start(length: usize) -> u32 {
    0x9e37_79b9u32
        .wrapping_add(length as u32)
        .wrapping_add(3_923_095)
}

fn begin(length: usize, seed: u64) -> [u32; 3] {
    let start = start(length);
    if seed == 0 {
        return [start; 3];
    }
    mix([
        start.wrapping_add((seed >> 32) as u32),
        start.wrapping_add(seed as u32),
        start,
    ])
}

/// PostgreSQL's `hash_any`.
pub fn hash_any(k: &[u8]) -> u32 {
    hash_any_extended(k, 0) as u32
}

/// PostgreSQL's `hash_any_extended`.
pub fn hash_any_extended(k: &[u8], seed: u64) -> u64 {
    bytes_from(begin(k.len(), seed), k)
}

/// PostgreSQL's `hash_uint32_extended`.
pub fn hash_uint32_extended(k: u32, seed: u64) -> u64 {
    let [a, b, c] = begin(4, seed);
    finish([a.wrapping_add(k), b, c])
}

fn bytes_from(mut state: [u32; 3], k: &[u8]) -> u64 {
    let little = |part: &[u8]| {
        let mut word = [0u8; 4];
        word[..part.len()].copy_from_slice(part);
        u32::from_le_bytes(word)
    };
    let mut parts = k.chunks_exact(12);
    for part in &mut parts {
        let [a, b, c] = state;
        state = mix([
            a.wrapping_add(little(&part[..4])),
            b.wrapping_add(little(&part[4..8])),
            c.wrapping_add(little(&part[8..])),
        ]);
    }
    let rest = parts.remainder();
    let take = |from: usize, to: usize| {
        let to = to.min(rest.len());
        if from < to {
            little(&rest[from..to])
        } else {
            0
        }
    };
    let [a, b, c] = state;
    // The lowest byte of the last word is the length's.
    finish([
        a.wrapping_add(take(0, 4)),
        b.wrapping_add(take(4, 8)),
        c.wrapping_add(take(8, 11) << 8),
    ])
}
