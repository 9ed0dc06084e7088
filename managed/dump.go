package managed

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/regular"
)

// dumped is the text of a program.
type dumped struct{ step, text string }

// DumpXLA writes the programs that steps were compiled to for this state into a directory, which must exist: a file
// each, in the order in which they were compiled (00-train_step.mlir), as StableHLO. The Go backend has no programs to write.
// [callbacks.Profile] calls it.
func (s *State) DumpXLA(dir string) error {
	leave := s.access.peekAll()
	programs := slices.Clone(s.programs)
	leave()
	for i, p := range programs {
		if p.text == "" {
			continue
		}
		name := fmt.Sprintf("%02d-%s.mlir", i, strings.ReplaceAll(p.step, " ", "_"))
		if err := regular.Write(filepath.Join(dir, name), []byte(p.text), 0o644); err != nil {
			return fmt.Errorf("managed: dump: %w", err)
		}
	}
	return nil
}
