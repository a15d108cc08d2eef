package eyewall

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// LibraryVariable is the environment variable that names the file of libeyewall.
const LibraryVariable = "EYEWALL_LIBRARY"

// The places where the package looks for libeyewall if the variable names none. The dynamic linker searches
// LD_LIBRARY_PATH and the system's folders for a name without a slash. The suffix is the version of the ABI.
var libraryNames = []string{"libeyewall.so.0", "/usr/local/lib/libeyewall.so.0"}

// functions holds the address of each function of eyewall.h. A field's tag is the function's name without eyewall_.
type functions struct {
	errorMessage  uintptr `c:"error_message"`
	version       uintptr `c:"version"`
	open          uintptr `c:"open"`
	close         uintptr `c:"close"`
	size          uintptr `c:"size"`
	entryBytesMax uintptr `c:"entry_bytes_max"`
	isReadOnly    uintptr `c:"is_read_only"`
	isFailed      uintptr `c:"is_failed"`

	get       uintptr `c:"get"`
	peek      uintptr `c:"peek"`
	lookup    uintptr `c:"lookup"`
	contains  uintptr `c:"contains"`
	getCopy   uintptr `c:"get_copy"`
	hitFree   uintptr `c:"hit_release"`
	hitKey    uintptr `c:"hit_key"`
	hitMeta   uintptr `c:"hit_metadata"`
	hitTag    uintptr `c:"hit_tag"`
	hitInfo   uintptr `c:"hit_info"`
	hitCheck  uintptr `c:"hit_check"`
	iterBegin uintptr `c:"iter_begin"`
	iterNext  uintptr `c:"iter_next"`
	iterEnd   uintptr `c:"iter_end"`

	put         uintptr `c:"put"`
	putNegative uintptr `c:"put_negative"`
	add         uintptr `c:"add"`
	replaceIf   uintptr `c:"replace_if"`
	remove      uintptr `c:"remove"`
	clear       uintptr `c:"clear"`
	touch       uintptr `c:"touch"`
	increment   uintptr `c:"increment"`

	purgeTag    uintptr `c:"purge_tag"`
	purgePrefix uintptr `c:"purge_prefix"`
	purgeAll    uintptr `c:"purge_all"`
	now         uintptr `c:"now"`
	sweep       uintptr `c:"sweep"`
	sync        uintptr `c:"sync"`
	statsRead   uintptr `c:"stats_read"`

	claimBegin  uintptr `c:"claim_begin"`
	claimPut    uintptr `c:"claim_put"`
	claimRemove uintptr `c:"claim_remove"`
	claimEnd    uintptr `c:"claim_end"`

	fillBegin      uintptr `c:"fill_begin"`
	flightStore    uintptr `c:"flight_store"`
	flightRemember uintptr `c:"flight_remember"`
	flightEnd      uintptr `c:"flight_end"`

	writerBegin  uintptr `c:"writer_begin"`
	writerWrite  uintptr `c:"writer_write"`
	writerCommit uintptr `c:"writer_commit"`
	writerAbort  uintptr `c:"writer_abort"`
}

// library is set before the first cache exists, and never changes after that.
var library functions

// loaded opens libeyewall once. A process that failed to find it doesn't search again.
var loaded = sync.OnceValue(func() error {
	handle, err := openLibrary(os.Getenv(LibraryVariable))
	if err != nil {
		return err
	}
	return library.bind(handle)
})

// openLibrary opens the named file or, if the name is empty, the first of the default ones.
func openLibrary(named string) (uintptr, error) {
	names, advice := libraryNames, "install libeyewall (bindings/c/README.md), or set "+LibraryVariable+" to its file"
	if named != "" {
		names, advice = []string{named}, "correct or unset "+LibraryVariable
	}
	var refused []error
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return handle, nil
		}
		refused = append(refused, err)
	}
	return 0, fmt.Errorf("%w: %w; %s", ErrLibrary, errors.Join(refused...), advice)
}

// bind finds all functions in an open library.
func (f *functions) bind(handle uintptr) error {
	fields := reflect.ValueOf(f).Elem()
	for i := range fields.NumField() {
		name := "eyewall_" + fields.Type().Field(i).Tag.Get("c")
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return fmt.Errorf("%w: %w; install the libeyewall of the same release as this package", ErrLibrary, err)
		}
		*(*uintptr)(fields.Field(i).Addr().UnsafePointer()) = address
	}
	return nil
}

// Version returns the version of libeyewall, as "1.2.3".
func Version() (string, error) {
	if err := loaded(); err != nil {
		return "", err
	}
	return goString(property(library.version)), nil
}

// call calls a function that returns an eyewall_status. The arguments may be pointers, converted in the call's
// argument list: they stay alive until it returns.
//
// The library keeps the message of an error for each thread, so the goroutine stays on its thread until the message
// is read.
//
//go:uintptrescapes
func call(function uintptr, arguments ...uintptr) (status, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	result, _, _ := purego.SyscallN(function, arguments...)
	answer := status(int32(result))
	if answer >= 0 {
		return answer, nil
	}
	return answer, &Error{Code: Code(answer), Message: goString(property(library.errorMessage))}
}

// property calls a function that can't fail.
//
//go:uintptrescapes
func property(function uintptr, arguments ...uintptr) uintptr {
	result, _, _ := purego.SyscallN(function, arguments...)
	return result
}

// address returns the address of a string's bytes, for the argument list of a call.
func address(text string) unsafe.Pointer {
	return unsafe.Pointer(unsafe.StringData(text))
}

// addressOf returns the address of a slice's bytes, for the argument list of a call.
func addressOf(bytes []byte) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(bytes))
}

// foreign converts an address that the library returned. The memory isn't Go's, so the collector doesn't move it.
func foreign(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// view returns the library's bytes at an address, without a copy.
func view(address, length uintptr) []byte {
	if address == 0 || length == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(foreign(address)), length)
}

// goString copies a string of C.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(foreign(address), length)) != 0 {
		length++
	}
	return string(unsafe.Slice((*byte)(foreign(address)), length))
}
