//! SHA-256 (FIPS 180-4): what tells one point, or one file, from another, also where somebody chooses them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The SHA-256 of some bytes. Shown, and written to files, as 64 hexadecimal digits.
///
/// ```
/// use pasta_opt::digest::Digest;
///
/// let digest = Digest::of(b"abc");
/// assert!(digest.to_string().starts_with("ba7816bf8f01cfea"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// The fractional parts of the cube roots of the first 64 primes.
const ROUND: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// The fractional parts of the square roots of the first eight primes.
const FIRST: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut state = FIRST;
        let (blocks, rest) = bytes.as_chunks::<64>();
        blocks.iter().for_each(|block| compress(&mut state, block));
        // The rest, a bit, zeros, and the length in bits.
        let mut end = [0; 128];
        end[..rest.len()].copy_from_slice(rest);
        end[rest.len()] = 0x80;
        let length = if rest.len() < 56 { 64 } else { 128 };
        end[length - 8..length].copy_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
        end[..length].as_chunks::<64>().0.iter().for_each(|block| compress(&mut state, block));
        let mut digest = [0; 32];
        digest.as_chunks_mut::<4>().0.iter_mut().zip(state).for_each(|(out, word)| *out = word.to_be_bytes());
        Self(digest)
    }

    /// Of a point: its coordinates as little-endian doubles.
    pub fn of_point(x: &[f64]) -> Self {
        Self::of(&x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    }

    /// Its first eight bytes, big-endian.
    pub fn word(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut w = [0_u32; 64];
    w.iter_mut().zip(block.as_chunks::<4>().0).for_each(|(w, bytes)| *w = u32::from_be_bytes(*bytes));
    for i in 16..64 {
        let (a, b) = (w[i - 15], w[i - 2]);
        let before = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let after = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        w[i] = w[i - 16].wrapping_add(before).wrapping_add(w[i - 7]).wrapping_add(after);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (w, k) in w.into_iter().zip(ROUND) {
        let mix = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one = h.wrapping_add(mix).wrapping_add(choice).wrapping_add(k).wrapping_add(w);
        let mix = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = mix.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
    }
    state.iter_mut().zip([a, b, c, d, e, f, g, h]).for_each(|(s, x)| *s = s.wrapping_add(x));
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8; 2]| Some(16 * digit(pair[0])? + digit(pair[1])?);
        let bytes: Option<Vec<u8>> = text.as_bytes().as_chunks().0.iter().map(byte).collect();
        let digest = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
        digest.map(Self).ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    /// The examples of FIPS 180-4, and lengths around the end of a block (from another program).
    #[test]
    fn it_is_sha_256() {
        let of = |bytes: &[u8]| Digest::of(bytes).to_string();
        assert_eq!(of(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(of(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(of(long), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        assert_eq!(of(&[b'a'; 55]), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
        assert_eq!(of(&[b'a'; 64]), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let digest = Digest::of_point(&[1.0, -0.0]);
        let text = serde_json::to_string(&digest).expect("a text");
        assert_eq!(serde_json::from_str::<Digest>(&text).ok(), Some(digest));
        assert!(serde_json::from_str::<Digest>("\"ab\"").is_err());
        assert_ne!(digest, Digest::of_point(&[1.0, 0.0]));
    }
}
