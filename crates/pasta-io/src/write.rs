//! Files appear whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::talk::is_muted;

/// Makes the folder and those above it, where they are not there.
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .map_err(|cause| Failure::system(format!("cannot make the folder {}: {cause}", path.display())))
}

/// Writes `contents` to the file `name` in a folder, which is made if it is not there, and gives its path.
///
/// The contents go to a file beside it first, which is then renamed, so that a reader never sees half a file. What a killed
/// program left there is written over. A device, a pipe or a link that has this name is written to, and not replaced.
pub fn write(into: &Path, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, Failure> {
    let path = into.join(name);
    if is_muted() {
        return Ok(path);
    }
    make_folder(into)?;
    let is_special = |about: fs::Metadata| !about.is_file() && !about.is_dir();
    if fs::symlink_metadata(&path).is_ok_and(is_special) {
        let written = fs::File::create(&path).and_then(|mut file| file.write_all(contents.as_ref()));
        return match written {
            Ok(()) => Ok(path),
            Err(cause) => Err(Failure::system(format!("cannot write {}: {cause}", path.display()))),
        };
    }
    let unfinished = into.join(format!(".{name}.unfinished"));
    let written = fill(&unfinished, contents.as_ref()).and_then(|()| fs::rename(&unfinished, &path));
    match written {
        Ok(()) => Ok(path),
        Err(cause) => {
            // The first failure is the one to tell; this file may not even exist.
            let _ = fs::remove_file(&unfinished);
            Err(Failure::system(format!("cannot write {}: {cause}", path.display())))
        }
    }
}

/// Writes `contents` to a file, whose folder is made if it is not there.
pub fn write_file(path: &Path, contents: impl AsRef<[u8]>) -> Result<PathBuf, Failure> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Err(Failure::input(format!("{} is not the name of a file", path.display())));
    };
    let into = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    write(into.unwrap_or(Path::new(".")), name, contents)
}

fn fill(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::write;

    #[test]
    fn a_file_appears_in_a_new_folder_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        write(&deep, "page.html", "first").unwrap();
        let path = write(&deep, "page.html", "second").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "second");
        assert_eq!(fs::read_dir(deep).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_program_left_is_gone_after_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".page.html.unfinished"), "half a page, and longer than the next")
            .unwrap();
        let path = write(folder.path(), "page.html", "whole").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_and_a_link_are_written_to_and_stay_what_they_are() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write(folder.path(), "pipe", "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        fs::write(folder.path().join("file"), "longer than the next").unwrap();
        symlink("file", folder.path().join("link")).unwrap();
        write(folder.path(), "link", "new").unwrap();
        assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "new");
    }

    #[test]
    fn a_failed_write_names_the_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // A folder with that name is in the way of the renaming.
        fs::create_dir(folder.path().join("page.html")).unwrap();
        let failure = write(folder.path(), "page.html", "text").unwrap_err();
        assert!(failure.to_string().contains("page.html"), "{failure}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
