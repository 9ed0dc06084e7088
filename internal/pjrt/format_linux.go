package pjrt

import (
	"debug/elf"
	"fmt"
	"io"
	"runtime"
)

// Truncated files lack the section headers.
func checkFormat(file io.ReaderAt, size int64) error {
	library, err := elf.NewFile(file)
	if err != nil {
		return fmt.Errorf("%d bytes, truncated or not an ELF file: %w", size, err)
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if library.Type != elf.ET_DYN || library.Machine != want {
		return fmt.Errorf("it is %v for %v, expected %v for %v", library.Type, library.Machine, elf.ET_DYN, want)
	}
	return nil
}
