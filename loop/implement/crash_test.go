package implement_test

import (
	"testing"

	"hone"
	"hone/internal/config"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop"
	"hone/loop/implement"
	"hone/model"
)

// TestCrashAmongRefusals: a reply that was cut, builds that the model asks for,
// files that it may not overwrite, and several files at last.
func TestCrashAmongRefusals(t *testing.T) {
	cut := answer("^^^a\ndone\n^^^end\n")
	cut.Finish = model.Length
	implementScene(8, []model.Reply{
		cut,
		answer("&&&start\nlet me see\n&&&end\n$$$\n"),
		answer("$$$\n^^^a\ndone\n^^^end\n"),
		answer("^^^a\nfirst\n^^^end\n^^^build.sh\nexit 0\n^^^end\n"),
		answer("^^^bin\nwhat it holds was not shown\n^^^end\n"),
		answer("&&&start\nfor you\n&&&end\n^^^a\ndone\n^^^end\n^^^deep/er/b\nbee\n^^^end\n^^^c\n#!/bin/sh\n^^^end\n"),
	}).Run(t)
}

// TestCrashWithoutSuccess: the rounds are used up and the build fails still.
func TestCrashWithoutSuccess(t *testing.T) {
	implementScene(2, []model.Reply{answer("^^^a\none\n^^^end\n^^^b\nbee\n^^^end\n"), answer("%%%start\nI give up\n%%%end\n$$$\n")}).Run(t)
}

// TestCrashWhileChoosing: the model chooses files, and asks for more (ruling C14).
func TestCrashWhileChoosing(t *testing.T) {
	scene := implementScene(8, []model.Reply{
		answer(`{"files": ["a"]}`),
		answer("^^^a\none\n^^^end\n"),
		answer(`{"files": ["b", "a"]}`),
		answer("^^^a\ntwo\n^^^end\n^^^b\nbee\n^^^end\n"),
		answer(`{"files": ["nowhere"]}`),
		answer(`{"files": ["b"]}`),
		answer("^^^a\ndone\n^^^end\n"),
	})
	scene.Play = func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
		end := process{loop: implement.Loop{Settings: loop.Settings{Values: config.Values{config.SelectAbove.Name: int64(1)}}}, model: m, rounds: 8, observe: o}.live(t, dir)
		timeless(t, dir)
		return end
	}
	scene.Run(t)
}

func implementScene(rounds int, replies []model.Reply) crashtest.Scene {
	return crashtest.Scene{
		CompareRequests: true,
		Replies:         replies,
		Setup: func(t testing.TB, dir string) {
			files(t, dir, map[string]string{"a": "zero\n", "b": "b\n", "bin": "\x00\xff", "build.sh": untilDone})
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			end := process{model: m, rounds: rounds, observe: o}.live(t, dir)
			timeless(t, dir)
			return end
		},
	}
}
