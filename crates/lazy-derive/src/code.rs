//! The implementation of `Deep` for an [`Item`], as text. `lib.rs` calls [`implementation`].

use super::item::{Item, Parameter, Variant};

/// The implementation for the item.
pub(super) fn implementation(item: &Item) -> String {
    let Item { name, generics, bounds, variants, home } = item;
    let declared = list(generics, |parameter| parameter.declared.clone());
    let names = list(generics, |parameter| parameter.name.clone());
    let is_forced = |parameter: &Parameter| {
        variants.iter().flat_map(|variant| &variant.fields).any(|field| field.names(parameter))
    };
    let bound = |parameter: &Parameter| {
        let deep = if is_forced(parameter) { format!("{home}::Deep + ") } else { String::new() };
        format!("{}: {deep}::core::marker::Send + ::core::marker::Sync,", parameter.name)
    };
    let types: String = generics.iter().filter(|parameter| parameter.is_type).map(bound).collect();
    let comma = if bounds.is_empty() || bounds.ends_with(',') { "" } else { "," };
    let arms: String = variants.iter().map(|variant| arm(variant, home)).collect();
    let body =
        if variants.is_empty() { "match *self {}".to_owned() } else { format!("match self {{ {arms} }}") };
    format!(
        "#[automatically_derived]
        impl<{declared}> {home}::Deep for {name}<{names}> where {bounds}{comma} {types} {{
            fn deep(&self) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {{
                async move {{ {body} }}
            }}
        }}"
    )
}

fn list(generics: &[Parameter], part: impl Fn(&Parameter) -> String) -> String {
    generics.iter().map(|parameter| part(parameter) + ", ").collect()
}

/// `Self::Fork { left: field_0, 1: field_1, .. } => { .. }`: such a pattern fits each kind of
/// variant, because the fields of a tuple are its numbers.
fn arm(variant: &Variant, home: &str) -> String {
    let fields = variant.fields.iter().enumerate();
    let pattern: String =
        fields.clone().map(|(index, field)| format!("{}: field_{index}, ", field.name)).collect();
    let forces: String =
        fields.map(|(index, _)| format!("{home}::Deep::deep(field_{index}).await; ")).collect();
    format!("{} {{ {pattern} .. }} => {{ {forces} }}", variant.path)
}
