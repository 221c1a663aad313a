//! The implementations for an [`Item`], as text. `lib.rs` calls [`implementation`].

use super::item::Item;

/// The implementations of `Zeroable` and `Pod` for the item, which make it `Plain`, and their
/// checks.
///
/// The promises of `Pod` hold because the compiler refuses the type otherwise: it is inhabited and
/// any bytes are a value of it, because it is a struct of fields that are `Pod`; it has no byte of
/// padding, because its size is the sum of theirs; its layout is fixed by `repr`; and `Pod` itself
/// asks for `Copy` and `'static`.
pub(super) fn implementation(item: &Item) -> String {
    let Item { name, fields, home, is_fixed } = item;
    let fixed = if *is_fixed {
        String::new()
    } else {
        format!("const _: () = ::core::panic!(\"{name} is plain data only with repr(C)\");")
    };
    let checks: String = fields.iter().map(|field| format!("is_plain::<{field}>();")).collect();
    let sum: String = fields.iter().map(|field| format!(" + ::core::mem::size_of::<{field}>()")).collect();
    format!(
        "const _: () = {{
            {fixed}
            const fn is_plain<T: {home}::derived::Pod>() {{}}
            const _: () = {{ {checks} }};
            const _: () = ::core::assert!(
                ::core::mem::size_of::<{name}>() == 0{sum},
                \"{name} has padding between its fields or behind them\"
            );
            #[automatically_derived]
            unsafe impl {home}::derived::Zeroable for {name} {{}}
            #[automatically_derived]
            unsafe impl {home}::derived::Pod for {name} {{}}
        }};"
    )
}
