//! Vectors in the format of numpy (NPY 1.0, little-endian doubles): what a large point is kept in.

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";

/// A vector as the bytes of a file.
pub(crate) fn to_bytes(vector: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}", vector.len());
    // The data begins at a multiple of 64 bytes, after a line end.
    let unpadded = MAGIC.len() + 2 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    vector.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes
}

/// What [`to_bytes`] wrote.
pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Vec<f64>, &'static str> {
    let (length, rest) = bytes
        .strip_prefix(MAGIC)
        .and_then(<[u8]>::split_first_chunk::<2>)
        .ok_or("not a file of numpy, version 1.0")?;
    let (header, data) = rest.split_at_checked(u16::from_le_bytes(*length).into()).ok_or("cut short")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    let (values, rest) = data.as_chunks::<8>();
    let shape = format!("'shape': ({},)", values.len());
    if !header.contains("'descr': '<f8'") || !header.contains(&shape) || !rest.is_empty() {
        return Err("not one vector of little-endian doubles");
    }
    Ok(values.iter().map(|value| f64::from_le_bytes(*value)).collect())
}

#[cfg(test)]
mod tests {
    use super::{from_bytes, to_bytes};

    #[test]
    fn a_vector_is_read_back_and_begins_where_numpy_wants_it() {
        for vector in [vec![], vec![1.5, -0.0, f64::MIN_POSITIVE], (0..1000).map(f64::from).collect()] {
            let bytes = to_bytes(&vector);
            assert_eq!((bytes.len() - 8 * vector.len()) % 64, 0);
            assert_eq!(from_bytes(&bytes).unwrap(), vector);
            assert!(from_bytes(&bytes[..bytes.len() - 1]).is_err());
        }
        assert!(from_bytes(b"something else").is_err());
    }
}
