package main

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/data"
)

func writeDigits() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "lazo", "digits")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	training, test, err := data.Digits()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "digits-")
	if err != nil {
		return "", err
	}
	n := 0
	for _, set := range []*data.Set{training, test} {
		for b, err := range set.Batches(1).All() {
			if err != nil {
				return "", err
			}
			n++
			pixels, class := b.Fields[0].Array.Flat.([]float32), b.Fields[1].Array.Flat.([]int32)[0]
			if err := writeImage(filepath.Join(part, fmt.Sprint(class), fmt.Sprintf("%04d.png", n)), pixels); err != nil {
				return "", err
			}
		}
	}
	err = os.Rename(part, dir) // atomic
	if _, there := os.Stat(dir); err != nil && there == nil {
		err = os.RemoveAll(part)
	}
	return dir, err
}

func writeImage(path string, pixels []float32) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	picture := image.NewGray(image.Rect(0, 0, 8, 8))
	for i, v := range pixels {
		picture.Pix[i] = uint8(255*v + 0.5)
	}
	return errors.Join(png.Encode(file, picture), file.Close())
}
