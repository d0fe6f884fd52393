package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"
)

// bounds limit the measuring of one directory. One beyond them can't be measured, and counts as over its size.
type bounds struct {
	files, depth int
}

const (
	blockSize = 512 // of st_blocks, whatever the file system's is
	batch     = 256 // names read at a time
	maxLinks  = 1 << 19
	maxDepth  = 200 // open directories at a time
)

// beyond is the error for a directory with more entries than bounds allow.
type beyond struct{ what string }

func (b beyond) Error() string { return b.what }

type inode struct{ device, number uint64 }

// walk adds up the disk space of files: without holes of sparse files, and once for a file with several names. It goes
// from open directory to open directory and follows no link, so that moving things meanwhile can't mislead it. A file
// moved from ahead of it to behind it is missed; the order is another one each time.
type walk struct {
	ctx   context.Context
	most  bounds
	bytes int64
	files int
	links map[inode]struct{}
}

// measure returns the disk space of a directory in bytes; 0 for a missing one. The error is a beyond where bounds are
// exceeded.
func (t *tree) measure(ctx context.Context, directory string, most bounds) (int64, error) {
	top, err := t.root.Open(directory)
	if err != nil {
		return 0, unlessMissing(err)
	}
	defer top.Close()
	w := walk{ctx: ctx, most: most, links: map[inode]struct{}{}}
	err = w.below(top, 0)
	return w.bytes, err
}

func (w *walk) below(directory *os.File, depth int) error {
	if depth > w.most.depth {
		return beyond{fmt.Sprintf("directories lie more than %d deep", w.most.depth)}
	}
	for {
		names, err := directory.Readdirnames(batch)
		if err != nil && !errors.Is(err, io.EOF) {
			return unlessGone(err)
		}
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			if err := w.entry(directory, name, depth); err != nil {
				return err
			}
		}
		if err != nil || len(names) == 0 {
			return w.ctx.Err()
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
}

func (w *walk) entry(directory *os.File, name string, depth int) error {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(directory.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return unlessGone(err)
	}
	if w.files++; w.files > w.most.files {
		return beyond{fmt.Sprintf("there are more than %d files", w.most.files)}
	}
	folder := stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if folder || w.firstSeen(&stat) {
		w.bytes += stat.Blocks * blockSize
	}
	if !folder {
		return nil
	}
	fd, err := unix.Openat(int(directory.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return unlessGone(err)
	}
	inner := os.NewFile(uintptr(fd), name)
	defer inner.Close()
	return w.below(inner, depth+1)
}

// firstSeen is false for another name of a counted file. Beyond maxLinks such files each name counts.
func (w *walk) firstSeen(stat *unix.Stat_t) bool {
	if stat.Nlink < 2 {
		return true
	}
	file := inode{uint64(stat.Dev), stat.Ino}
	if _, seen := w.links[file]; seen {
		return false
	}
	if len(w.links) < maxLinks {
		w.links[file] = struct{}{}
	}
	return true
}

// unlessGone ignores errors of entries that were removed or replaced since their name was read.
func unlessGone(err error) error {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ESTALE} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}
