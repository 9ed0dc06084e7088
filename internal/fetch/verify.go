package fetch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/lazo-ml/lazo/internal/regular"
)

// VerifyFile compares a file with a size in bytes (0: any) and a SHA-256 in lower-case hex. It accepts only regular
// files, no symbolic links. The error wraps ErrSize, ErrDigest, or an error of the file system.
func VerifyFile(path string, size int64, sha256 string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("fetch: %s is not a regular file but %v: %w", path, info.Mode().Type(), ErrDigest)
	}
	if size > 0 && info.Size() != size {
		return fmt.Errorf("fetch: %s: %w", path, judge(info.Size(), sha256, size, sha256))
	}
	n, got, err := Digest(path, cmp.Or(max(size, 0), math.MaxInt64-1))
	if err != nil {
		return err
	}
	if err := judge(n, got, size, sha256); err != nil {
		return fmt.Errorf("fetch: %s: %w", path, err)
	}
	return nil
}

// Digest returns a file's size in bytes and SHA-256 in lower-case hex, or above limit bytes an ErrSize.
func Digest(path string, limit int64) (size int64, digest string, err error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, "", fmt.Errorf("fetch: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, "", fmt.Errorf("fetch: %w", err)
	}
	sum := sha256.New()
	if size = info.Size(); size <= limit {
		size, err = io.Copy(sum, io.LimitReader(file, limit+1)) // it may grow
	}
	if size > limit {
		err = fmt.Errorf("%w: %d bytes, expected at most %d", ErrSize, size, limit)
	}
	if err != nil {
		return 0, "", fmt.Errorf("fetch: %s: %w", path, err)
	}
	return size, hex.EncodeToString(sum.Sum(nil)), nil
}

func judge(size int64, digest string, wantSize int64, wantDigest string) error {
	if wantSize > 0 && size != wantSize {
		return fmt.Errorf("%w: %d bytes, want %d", ErrSize, size, wantSize)
	}
	if digest != wantDigest {
		return fmt.Errorf("%w: SHA-%d %s, want %s", ErrDigest, map[int]int{40: 1, 64: 256}[len(digest)], digest, wantDigest)
	}
	return nil
}
