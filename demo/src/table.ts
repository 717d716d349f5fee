// Prints the table at the end.

// What it is, its value, and whether that is as it must be.
export type Row = [name: string, value: string, right: boolean];

export function printTable(rows: Row[]): void {
  const width = Math.max(...rows.map(([name]) => name.length));
  const valueWidth = Math.max(...rows.map(([, value]) => value.length));
  const line = `  ${"-".repeat(width + valueWidth + 11)}`;
  console.log(`\n${line}`);
  for (const [name, value, right] of rows)
    console.log(`  ${name.padEnd(width)}   ${value.padEnd(valueWidth)}   ${right ? "ok" : "WRONG"}`);
  console.log(`${line}\n`);
}
