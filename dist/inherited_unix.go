//go:build unix

package dist

import (
	"net"
	"os"
	"strconv"
	"syscall"
)

// inherited returns the launcher's listener for rank 0. A program in between may have closed it, and the descriptor
// be something else.
func inherited() net.Listener {
	fd, err := strconv.Atoi(os.Getenv(variableListener))
	if err != nil {
		return nil
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return nil
	}
	at, ok := bound.(*syscall.SockaddrInet4)
	if host, port, err := net.SplitHostPort(os.Getenv(variableCoordinator)); !ok || err != nil ||
		host != net.IP(at.Addr[:]).String() || port != strconv.Itoa(at.Port) {
		return nil
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close() // l has a copy that no child inherits
	l, err := net.FileListener(file)
	if err != nil {
		return nil
	}
	return l
}
