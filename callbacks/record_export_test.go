package callbacks

import (
	"io/fs"
	"syscall"

	"github.com/lazo-ml/lazo/loop"
)

// BreakFile makes all further writes of a [JSONL] or [CSV] fail.
func BreakFile(a loop.Attendant) error { return a.(*recordFile).file.Close() }

// Disk is a disk with Room bytes free. A write that does not fit is made in part.
type Disk struct{ Room, Opened int }

// OnDisk puts the files of a [JSONL] or [CSV] that has not begun on d.
func OnDisk(d *Disk, a loop.Attendant) {
	a.(*recordFile).disk = func(path string, how int, mode fs.FileMode) (diskFile, error) {
		d.Opened++
		file, err := openRegular(path, how, mode)
		return &fileOnDisk{file, d}, err
	}
}

type fileOnDisk struct {
	diskFile
	disk *Disk
}

func (f *fileOnDisk) Write(b []byte) (int, error) {
	n := min(len(b), f.disk.Room)
	f.disk.Room -= n
	n, err := f.diskFile.Write(b[:n])
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}
