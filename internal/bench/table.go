package main

import (
	"fmt"
	"strings"
)

// A table prints as Markdown.
type table struct {
	title  string
	head   []string
	rows   [][]string
	remark string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the table; its first column is text, the others are figures.
func (t table) String() string {
	var b strings.Builder
	if t.title != "" {
		fmt.Fprintf(&b, "**%s**\n\n", t.title)
	}
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := []string{"---"}
	for range t.head[1:] {
		rule = append(rule, "---:")
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	if t.remark != "" {
		fmt.Fprintf(&b, "\n%s\n", t.remark)
	}
	return b.String()
}

// String prints a median with its quartiles.
func (s spread) String() string { return s.digits(2) }

func (s spread) digits(n int) string {
	return fmt.Sprintf("%.*f (%.*f-%.*f)", n, s.median, n, s.low, n, s.high)
}
