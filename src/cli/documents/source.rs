//! From paths to documents: folders in name order, several documents in a file, lists one by one.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;
use serde_saphyr::UserMessageFormatter;

use super::{Document, DocumentError, DocumentPlace};

/// Every document of these files, folders and, for `-`, standard input, in order.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>, DocumentError> {
    let mut documents = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).map_err(|error| unreadable(path, error))?;
            documents.extend(parse(&text, "-")?);
            continue;
        }
        for file in files(path)? {
            let text = fs::read_to_string(&file).map_err(|error| unreadable(&file, error))?;
            documents.extend(parse(&text, &file.display().to_string())?);
        }
    }
    if documents.is_empty() {
        let asked: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(DocumentError::Nothing { asked: asked.join(", ") });
    }
    Ok(documents)
}

fn unreadable(path: &Path, reason: io::Error) -> DocumentError {
    DocumentError::Unreadable { file: path.display().to_string(), reason }
}

/// The file itself, or the files below a folder.
fn files(path: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, &mut found)?;
    if found.is_empty() {
        return Err(DocumentError::EmptyFolder { folder: path.display().to_string() });
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), DocumentError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries: Vec<PathBuf> =
        entries.map_err(|error| unreadable(folder, error))?.iter().map(fs::DirEntry::path).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Every document of a text, lists flattened.
fn parse(text: &str, file: &str) -> Result<Vec<Document>, DocumentError> {
    let mut documents = Vec::new();
    for (at, value) in values(text, file)?.into_iter().enumerate() {
        let place = DocumentPlace { file: file.to_owned(), document: at + 1, item: None };
        flatten(Document { value, place }, &mut documents)?;
    }
    Ok(documents)
}

/// The objects of a text that may be JSON, one after the other, or YAML.
fn values(text: &str, file: &str) -> Result<Vec<Value>, DocumentError> {
    let is_json = Path::new(file).extension().is_some_and(|extension| extension == "json");
    if is_json || text.trim_start().starts_with('{') {
        match json(text, file) {
            Err(error) if is_json => return Err(error),
            Err(_) => {}
            values => return values,
        }
    }
    let options = serde_saphyr::options! { with_snippet: false, budget: None };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        DocumentError::Malformed {
            file: file.to_owned(),
            line,
            document: document_at(text, line),
            message: error.without_snippet().render_with_formatter(&UserMessageFormatter),
        }
    })
}

fn json(text: &str, file: &str) -> Result<Vec<Value>, DocumentError> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter() {
        let value = value.map_err(|error: serde_json::Error| DocumentError::Malformed {
            file: file.to_owned(),
            line: u64::try_from(error.line()).unwrap_or(u64::MAX),
            document: values.len() + 1,
            message: error.to_string(),
        })?;
        values.push(value);
    }
    Ok(values)
}

/// The number of the YAML document that holds this line.
fn document_at(text: &str, line: u64) -> usize {
    let mut document = 1;
    let mut content = false;
    for (line_number, line_text) in (1_u64..).zip(text.lines()) {
        if line_number > line {
            break;
        }
        let text = line_text.trim();
        if line_text.starts_with("---") {
            document += usize::from(content);
            content = false;
        } else if !text.is_empty() && !text.starts_with('#') {
            content = true;
        }
    }
    document
}

/// A list's items stand for themselves; those of a `PodList` say no kind, which the list's tells.
fn flatten(document: Document, into: &mut Vec<Document>) -> Result<(), DocumentError> {
    if !document.value.is_object() {
        return Err(document.error("document", "must be a Kubernetes object"));
    }
    if document.kind().is_empty() {
        return Err(document.error("kind", "is missing"));
    }
    let is_list = document.kind() == "List" || document.value.get("items").is_some();
    let Some(kind) = document.kind().strip_suffix("List").filter(|_| is_list).map(str::to_owned) else {
        into.push(document);
        return Ok(());
    };
    let api_version = document.api_version().to_owned();
    let items = match document.value.get("items") {
        Some(Value::Array(items)) => items.clone(),
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return Err(document.error("items", "must be a list")),
    };
    for (at, mut item) in items.into_iter().enumerate() {
        if let Value::Object(fields) = &mut item
            && !kind.is_empty()
        {
            fields.entry("apiVersion").or_insert_with(|| api_version.clone().into());
            fields.entry("kind").or_insert_with(|| kind.clone().into());
        }
        flatten(
            Document { value: item, place: DocumentPlace { item: Some(at), ..document.place.clone() } },
            into,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(usize, Option<usize>, String)> {
        let documents = parse(text, "f").unwrap();
        let place =
            |document: &Document| (document.place.document, document.place.item, document.kind().to_owned());
        documents.iter().map(place).collect()
    }

    #[test]
    fn documents_and_items_are_counted() {
        let text = "---\nkind: Pod\n---\nkind: List\nitems:\n- {kind: Node}\n- {kind: Pod}\n---\nkind: Job\n";
        let expected = [(1, None, "Pod"), (2, Some(0), "Node"), (2, Some(1), "Pod"), (3, None, "Job")];
        assert_eq!(places(text), expected.map(|(at, item, kind)| (at, item, kind.to_owned())));
        assert_eq!(places("{\"kind\":\"PodList\",\"items\":[{}]} {\"kind\":\"Pod\"}").len(), 2);
        assert_eq!(places("{kind: Pod}"), [(1, None, "Pod".to_owned())]);
    }

    #[test]
    fn what_can_not_be_read_is_named_with_file_line_and_document() {
        let error = |text| parse(text, "f.yaml").unwrap_err().to_string();
        let malformed = error("kind: Pod\n---\nkind: Pod\nmetadata: {name: [}\n");
        assert!(malformed.starts_with("f.yaml:4: document 2: "), "{malformed}");
        assert_eq!(error("kind: Pod\n---\nname: x\n"), "f.yaml: document 2: kind: is missing");
        assert_eq!(error("hello"), "f.yaml: document 1: document: must be a Kubernetes object");
    }

    #[test]
    fn a_wrong_field_is_named_by_its_path() {
        let documents = parse("kind: Pod\nspec: {containers: [{name: 3}]}", "f").unwrap();
        let error = documents[0].read::<crate::object::Pod>().unwrap_err().to_string();
        assert!(error.starts_with("f: document 1: spec.containers[0].name: "), "{error}");
    }
}
