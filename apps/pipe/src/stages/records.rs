//! The stages that cut lines into records, and make lines of them: `fields`, `column`, `columns`
//! and `join`. `stage.rs` calls them.

use crate::regex::chomp;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{DynStage, lift121, rewrite};

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// `fields`: the parts of each line between the delimiters, or else between blanks.
pub(crate) fn fields(delimiter: Option<u8>) -> DynStage {
    // A line often has as many fields as the one before it.
    let mut columns = 0;
    DynStage::new(lift121(move |line: &[u8]| -> Fields {
        let line = chomp(line);
        let mut record = Fields::with_capacity(columns, line.len());
        match delimiter {
            Some(delimiter) => line.split(|byte| *byte == delimiter).for_each(|field| record.push(field)),
            None => {
                line.split(is_blank).filter(|field| !field.is_empty()).for_each(|field| record.push(field))
            }
        }
        columns = record.len();
        record
    }))
}

/// `fields | column N` as one stage, which makes no record.
pub(crate) fn field(delimiter: Option<u8>, column: usize) -> DynStage {
    DynStage::new(rewrite(move |line: &[u8], made: &mut Vec<u8>| {
        let line = chomp(line);
        let field = match delimiter {
            Some(delimiter) => line.split(|byte| *byte == delimiter).nth(column - 1),
            None => line.split(is_blank).filter(|field| !field.is_empty()).nth(column - 1),
        };
        made.extend_from_slice(field.unwrap_or_default());
        made.push(b'\n');
    }))
}

/// `column N`: one field of each record, as a line.
pub(crate) fn column(number: usize) -> DynStage {
    let column = number - 1;
    DynStage::new(rewrite(move |record: &Fields, line: &mut Vec<u8>| {
        line.extend_from_slice(record.get(column).unwrap_or_default());
        line.push(b'\n');
    }))
}

/// `columns N..`: records of these fields.
pub(crate) fn columns(numbers: &[usize]) -> DynStage {
    let numbers = numbers.to_vec();
    let column = |record: &Fields, number: &usize| record.get(number - 1).unwrap_or_default().to_vec();
    DynStage::new(lift121(move |record: &Fields| -> Fields {
        numbers.iter().map(|number| column(record, number)).collect()
    }))
}

/// `join TEXT`: the fields of each record as a line, with the text between them.
pub(crate) fn joined_fields(text: &[u8]) -> DynStage {
    let text = text.to_vec();
    DynStage::new(rewrite(move |record: &Fields, line: &mut Vec<u8>| {
        for (index, field) in record.iter().enumerate() {
            line.extend_from_slice(if index > 0 { &text } else { b"" });
            line.extend_from_slice(field);
        }
        line.push(b'\n');
    }))
}
