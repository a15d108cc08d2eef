//! The name that programs know the shared library by, and that it stays where it is.

fn main() {
    // `0` is the version of the interface: it grows with each change that programs have to be compiled anew for.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libeyewall.so.0");
    // A program that unloads it (a plug-in does) leaves fork handlers and thread-local values behind, which are its code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
