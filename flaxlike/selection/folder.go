package selection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// folder has a search's records, each written whole or not at all.
type folder struct{ files vfs.FS }

type sealed struct {
	CRC32C string          `json:"crc32c"`
	Record json.RawMessage `json:"record"`
}

const patience = 30 * time.Second

func (f *folder) lock(ctx context.Context) (io.Closer, error) {
	limit := time.Now().Add(patience)
	for {
		lock, err := f.files.Lock("lock", "a search")
		locked := (*vfs.LockedError)(nil)
		switch {
		case !errors.As(err, &locked):
			return lock, err
		case time.Now().After(limit):
			return nil, fmt.Errorf("another process has locked the folder for %v: it hangs, or is of an older version of lazo, whose searches run alone: end it, or use another folder", patience)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (f *folder) write(name string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	text, err = json.Marshal(sealed{safetensors.Checksum(0).Update(text).String(), text})
	if err != nil {
		return err
	}
	half := name + ".part"
	if err := f.files.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.files.Create(half)
	if err != nil {
		return err
	}
	if _, err = file.Write(append(text, '\n')); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.files.Rename(half, name)
	}
	if err != nil {
		return err
	}
	return f.files.SyncDir(".")
}

const mostOfRecord = 16 << 20

func (f *folder) read(name string, record any) (bool, error) {
	file, err := f.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	size, err := file.Size()
	if err == nil && size > mostOfRecord {
		err = fmt.Errorf("%s has %d bytes, which is not the size of a record", name, size)
	}
	text := make([]byte, min(size, mostOfRecord))
	if err == nil {
		_, err = io.ReadFull(io.NewSectionReader(file, 0, size), text)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return false, err
	}
	var s sealed
	err = json.Unmarshal(text, &s)
	if sum := safetensors.Checksum(0).Update(s.Record).String(); err == nil && sum != s.CRC32C {
		err = fmt.Errorf("%w: the record has %s, expected %q by the file", safetensors.ErrChecksum, sum, s.CRC32C)
	}
	if err == nil {
		err = json.Unmarshal(s.Record, record)
	}
	if err != nil {
		return false, fmt.Errorf("the record %s: %w\n  remove the file, and the trial is run again", name, err)
	}
	return true, nil
}
