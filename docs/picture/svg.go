package main

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
	"time"
)

//go:embed style.css
var style string

// The measures of the picture in pixels.
const (
	cellWidth  = 8.43
	cellHeight = 20
	margin     = 20 // left, right and below the cells
	bar        = 40 // above them
)

// pause is how long the last frame is shown.
const pause = 4 * time.Second

// svg returns frames as an animated picture. Its last frame is what a viewer shows that
// does not animate, or whose user prefers reduced motion.
func svg(title string, frames []frame, columns, rows int) string {
	width, height := int(float64(columns)*cellWidth)+2*margin, rows*cellHeight+bar+margin
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n", width, height)
	fmt.Fprintf(b, "<title>%s</title>\n<style>\n%s%s</style>\n", html.EscapeString(title), style, keyframes(frames, rows*cellHeight))
	fmt.Fprintf(b, `<rect class="window" x=".5" y=".5" width="%d" height="%d" rx="10"/>`+"\n", width-1, height-1)
	for i, name := range []string{"close", "minimize", "zoom"} {
		fmt.Fprintf(b, `<circle class="%s" cx="%d" cy="20" r="6"/>`+"\n", name, margin+6+20*i)
	}
	fmt.Fprintf(b, `<text class="title" x="%d" y="25">%s</text>`+"\n", width/2, html.EscapeString(title))
	fmt.Fprintf(b, `<svg x="%d" y="%d" width="%d" height="%d">`+"\n", margin, bar, width-2*margin, rows*cellHeight)
	film(b, frames, rows*cellHeight)
	b.WriteString("</svg>\n</svg>\n")
	return b.String()
}

// keyframes returns the rules that show the frames one after the other, each so many
// pixels below the one before.
func keyframes(frames []frame, height int) string {
	total := frames[len(frames)-1].at + pause
	b := &strings.Builder{}
	fmt.Fprintf(b, ".film{animation:film %.2fs step-end infinite}\n@keyframes film{", total.Seconds())
	for i, f := range frames {
		fmt.Fprintf(b, "%.2f%%{transform:translateY(%dpx)}", 100*f.at.Seconds()/total.Seconds(), -i*height)
	}
	b.WriteString("}\n@media (prefers-reduced-motion:reduce){.film{animation:none}}\n")
	return b.String()
}

// film writes the frames one below the other, moved so that the last one is visible. A
// row that several frames show is written once.
func film(b *strings.Builder, frames []frame, height int) {
	fmt.Fprintf(b, `<g class="film" transform="translate(0 %d)">`+"\n", -(len(frames)-1)*height)
	ids := map[string]int{}
	for i, f := range frames {
		fmt.Fprintf(b, `<rect class="cursor" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", float64(f.x)*cellWidth, i*height+f.y*cellHeight+1, cellWidth, cellHeight-2)
		for y, row := range f.rows {
			if len(row) == 0 {
				continue
			}
			text := rowText(row)
			top := i*height + y*cellHeight
			if id, written := ids[text]; written {
				fmt.Fprintf(b, `<use href="#r%d" y="%d"/>`+"\n", id, top)
				continue
			}
			ids[text] = len(ids)
			fmt.Fprintf(b, `<g transform="translate(0 %d)"><text id="r%d" y="15">%s</text></g>`+"\n", top, ids[text], text)
		}
	}
	b.WriteString("</g>\n")
}

// rowText returns the contents of a row's text element.
func rowText(row []run) string {
	b := &strings.Builder{}
	for _, r := range row {
		class := ""
		if r.class != "" {
			class = fmt.Sprintf(` class="%s"`, r.class)
		}
		fmt.Fprintf(b, `<tspan x="%.1f"%s>%s</tspan>`, float64(r.column)*cellWidth, class, html.EscapeString(r.text))
	}
	return b.String()
}
