// Package images reads PNG and JPEG files as arrays of float32, and changes images at random while a model trains.
//
// [Open] lists a folder that has one subfolder for each class; [Folder.Set] is a data.Set whose batches read the files.
// [Augment] applies changes such as [FlipHorizontal] and [RandomCrop]; [MixUp] and [CutMix] mix pairs of examples.
package images
