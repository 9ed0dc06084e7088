package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
)

// An archive has its files with their modes, and the same bytes each time.
func TestArchives(t *testing.T) {
	entries := []entry{{"lazo", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("license")}}
	const want = "lazo -rwxr-xr-x program\nLICENSE -rw-r--r-- license\n"
	for name, of := range map[string]struct {
		write func(w io.Writer, entries ...entry) error
		read  func(b []byte) (string, error)
	}{"tar.gz": {tarball, listTar}, "zip": {zipped, listZip}} {
		var one, again bytes.Buffer
		if err := of.write(&one, entries...); err != nil {
			t.Fatal(err)
		}
		if err := of.write(&again, entries...); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), again.Bytes()) {
			t.Errorf("%s: two archives of the same files differ", name)
		}
		got, err := of.read(one.Bytes())
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, expected %q", name, got, err, want)
		}
	}
}

func listTar(b []byte) (list string, err error) {
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			return "", err
		}
		list += fmt.Sprintln(h.Name, h.FileInfo().Mode(), string(text))
	}
}

func listZip(b []byte) (list string, err error) {
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return "", err
	}
	for _, f := range zr.File {
		r, err := f.Open()
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return "", err
		}
		list += fmt.Sprintln(f.Name, f.Mode(), string(text))
	}
	return list, nil
}
