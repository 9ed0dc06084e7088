// Package images reads PNG and JPEG files as arrays of float32, and changes images at random while a model trains.
//
// [Open] makes a set of a folder with a subfolder for each class. [Augment] applies changes like [FlipHorizontal];
// [MixUp] and [CutMix] mix pairs of examples.
package images
