package xla

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/internal/owners"
)

// cacheFile is where the record of the library at path lies, "" for nowhere.
func cacheFile(path string) string {
	dir, err := owners.Cache()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lazo", "probe", fmt.Sprintf("%x.json", sha256.Sum256([]byte(path))))
}

// probedLimit is more than the reports of all options that are kept of a library.
const probedLimit = 1 << 20

func readProbed(name string) (known probed, ok bool) {
	data, err := owners.ReadFile(name, probedLimit)
	return known, err == nil && json.Unmarshal(data, &known) == nil
}

// writeProbed does its best: a record that cannot be kept costs a probe next time.
func writeProbed(name string, record probed) {
	data, err := json.Marshal(record)
	if err != nil || name == "" || os.MkdirAll(filepath.Dir(name), 0o750) != nil {
		return
	}
	_ = writeWhole(name, data)
}

// writeWhole writes a file whole or not at all.
func writeWhole(name string, parts ...[]byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), ".lazo-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails after the rename
	for _, part := range parts {
		if err == nil {
			_, err = temp.Write(part)
		}
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
