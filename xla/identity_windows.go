package xla

import (
	"fmt"
	"os"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

func identityOf(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("xla: %w", err)
	}
	return identity{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano(), MinMinor: pjrt.MinMinor}, nil
}
