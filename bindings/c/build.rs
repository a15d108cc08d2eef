//! Linker settings of the shared library.

fn main() {
    // The soname. Raise `0`, the version of the binary interface, with each change that programs must be
    // recompiled for.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libeyewall.so.0");
    // Never unload the library: its fork handlers and thread-local destructors would point into unmapped code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
