//go:build linux || darwin

package callbacks

import (
	"os"
	"syscall"
	"unsafe"
)

// The package imports only the standard library.
func terminalColumns(f *os.File) (columns int, ok bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
