package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// VerifyFile reads the file at path and compares it with size in bytes (0: any) and a SHA-256 in lower-case hex. It
// follows no symbolic link and takes only regular files. The error wraps ErrSize, ErrDigest, or what the file system
// said.
func VerifyFile(path string, size int64, sha256 string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("fetch: %s is no regular file but %v: %w", path, info.Mode().Type(), ErrDigest)
	}
	if size > 0 && info.Size() != size {
		return fmt.Errorf("fetch: %s: %w", path, judge(info.Size(), sha256, size, sha256))
	}
	n, got, err := Digest(path)
	if err != nil {
		return err
	}
	if err := judge(n, got, size, sha256); err != nil {
		return fmt.Errorf("fetch: %s: %w", path, err)
	}
	return nil
}

// Digest returns the number of bytes of the file at path and their SHA-256 in lower-case hex.
func Digest(path string) (size int64, digest string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", fmt.Errorf("fetch: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	size, err = io.Copy(sum, file)
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
		return fmt.Errorf("%w: SHA-256 %s, want %s", ErrDigest, digest, wantDigest)
	}
	return nil
}
