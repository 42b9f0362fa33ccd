//! Folders for pages.

use std::path::Path;
use std::{fs, io};

use pasta_io::{Failure, is_muted, make_folder};

/// Makes the folder for a page, and refuses one whose page this program did not write. To be called before the work.
pub fn folder_for_page(path: &Path) -> Result<(), Failure> {
    if is_muted() {
        return Ok(());
    }
    make_folder(path)?;
    let page = path.join("index.html");
    match fs::read(&page) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(Failure::system(format!("cannot read {}, which is in the way: {cause}", page.display())))
        }
        Ok(text) if !text.windows(OURS.len()).any(|part| part == OURS.as_bytes()) => {
            let message = format!("{} is there already, and not a page of this program", page.display());
            Err(Failure::input(message).hint("choose another folder"))
        }
        _ => Ok(()),
    }
}

/// In the head of every page.
const OURS: &str = "<meta name=\"generator\" content=\"pasta ";

#[cfg(test)]
mod tests {
    use pasta_io::write;

    use super::folder_for_page;
    use crate::Page;

    #[test]
    fn the_page_of_another_is_left_alone_and_our_own_is_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "index.html", "<h1>my own</h1>").unwrap();
        let failure = folder_for_page(folder.path()).unwrap_err();
        assert!(failure.to_string().contains("not a page of this program"), "{failure}");
        let page = Page { title: "t".into(), lead: String::new(), sections: Vec::new() };
        write(folder.path(), "index.html", page.html().unwrap()).unwrap();
        folder_for_page(folder.path()).unwrap();
    }
}
