//go:build unix

package callbacks

import (
	"io"
	"os"
	"syscall"
)

// quietPipe's writer fails on a broken pipe, where [os.File] would end the process.
func quietPipe(f *os.File) io.Writer {
	conn, err := f.SyscallConn()
	if err != nil {
		return f
	}
	return pipe{conn}
}

type pipe struct{ conn syscall.RawConn }

func (p pipe) Write(b []byte) (n int, err error) {
	var failed error
	err = p.conn.Write(func(fd uintptr) bool {
		for n < len(b) {
			wrote, err := syscall.Write(int(fd), b[n:])
			switch err {
			case nil:
				n += wrote
			case syscall.EINTR:
			case syscall.EAGAIN:
				return false
			default:
				failed = err
				return true
			}
		}
		return true
	})
	if failed != nil {
		err = failed
	}
	return n, err
}
