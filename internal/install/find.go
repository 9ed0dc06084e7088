package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// Find returns the installed plugin of a kind, or of one with the same build ("cpu" for "cpu106"). root "" is
// DefaultRoot(). It verifies files whose size, time or inode differ from the receipt by SHA-256. Errors wrap
// ErrUnknownKind, ErrNotInstalled, ErrDamaged or ErrUnsafe.
func Find(kind, root string) (Plugin, error) {
	return find(context.Background(), kind, root, Options{}, quick)
}

func Check(ctx context.Context, kind, root string) (Plugin, error) {
	return find(ctx, kind, root, Options{}, full)
}

func find(ctx context.Context, kind, root string, o Options, d depth) (_ Plugin, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("install: %s: %w", kind, err)
		}
	}()
	table, err := o.wheels()
	if err != nil {
		return Plugin{}, err
	}
	if known := kinds(table); !slices.Contains(known, kind) {
		return Plugin{}, fmt.Errorf("%w %q: the known ones are %s", ErrUnknownKind, kind, strings.Join(known, ", "))
	}
	folder, err := folderOf(kind, root)
	if err != nil {
		return Plugin{}, err
	}
	// Retry if an installation replaced the receipt.
	for {
		r, err := readReceipt(folder)
		if errors.Is(err, ErrNotInstalled) {
			if twin := twin(kind, root, table); twin != "" {
				folder = twin
				continue
			}
		}
		if err != nil {
			return Plugin{}, err
		}
		err = owners.Folder(folder)
		if err == nil {
			err = r.verify(ctx, folder, table, d)
		}
		if err == nil {
			return r.plugin(folder, table), nil
		}
		if again, _ := readReceipt(folder); again == nil || again.Dir == r.Dir {
			return Plugin{}, err
		}
	}
}

func twin(kind, root string, table []Wheel) string {
	rows, err := wheelsFor(kind, table)
	if err != nil {
		return ""
	}
	var wheels []string
	for _, w := range rows {
		wheels = append(wheels, w.SHA256)
	}
	for _, other := range kinds(table) {
		folder, err := folderOf(other, root)
		if err != nil || other == kind {
			continue
		}
		r, err := readReceipt(folder)
		if err != nil {
			continue
		}
		bare := len(rows) == 1 && slices.Equal(r.Wheels, []string{rows[0].LibrarySHA256}) && r.file(r.Library).SHA256 == rows[0].LibrarySHA256
		if bare || slices.Equal(r.Wheels, wheels) {
			return folder
		}
	}
	return ""
}

func checkMode(path string, dir bool) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case info.IsDir() != dir || !dir && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is %v", ErrDamaged, path, info.Mode().Type())
	}
	return owners.Own(path, info)
}

func stamp(info fs.FileInfo) fileRecord {
	record := fileRecord{Size: info.Size(), MTime: info.ModTime().UnixNano()}
	record.Inode = inode(info)
	return record
}

const lockPause = 50 * time.Millisecond

// lock ends with its process.
func lock(ctx context.Context, path string, progress func(Event)) (unlock func(), err error) {
	// Others must not be able to hold it.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	for waits := false; ; waits = true {
		taken, err := vfs.TryLock(file)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !taken {
			return func() { file.Close() }, nil
		}
		if !waits {
			progress(Event{Stage: Wait, File: path})
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("another installation holds %s: %w", path, context.Cause(ctx))
		case <-time.After(lockPause):
		}
	}
}
