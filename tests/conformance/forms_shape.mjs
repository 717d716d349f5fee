// Plain JSON made canonical (docs/json.md), said a second time, by the stock library's descriptors: requests on their
// way out, and answers that came in plain JSON. It is lenient: what is no message, or names what the schema
// does not have, stays as it is, for the server to judge.
import { ScalarType } from "@bufbuild/protobuf";

const KEY = { CurrencyAmount: "currency", Section: "name", SectionVersion: "name", SectionEdit: "name" };
const VALUE = { CurrencyAmount: "amount" };
const DOCUMENTS = new Set(["Document.json", "DocumentSibling.json", "PutDocumentRequest.json", "UpdateDocumentRequest.merge",
  "PresenceConnection.status", "SetPresenceRequest.status", "BatchSetPresenceRequest.status",
  "User.attributes", "User.settings", "UpsertUserRequest.attributes", "UpsertUserRequest.settings",
  "UpsertUserRequest.status", "BatchUpsertUsersRequest.status",
  "Section.json", "SectionEdit.replace", "SectionEdit.merge", "ItemSpec.attributes",
  "Item.attributes", "TargetMetadata.attributes", "PutTargetMetadataRequest.attributes",
  "SettingsBody.json", "GetSettingsResponse.json"]);
const LONG = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64]);
const VERBS = ["set", "remove", "increment", "append", "max", "add", "discard"];

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const short = (desc) => desc.typeName.split(".").pop();

export const isDocument = (field) => DOCUMENTS.has(`${short(field.parent)}.${field.name}`);
export const fieldOf = (desc, name) => desc.fields.find((each) => each.jsonName === name || each.name === name);

function step(value) {
  const verb = VERBS.find((each) => each in value);
  if (verb === undefined || "kind" in value) return value;
  const { [verb]: operand, ...others } = value;
  return { ...others, kind: `PATCH_KIND_${verb.toUpperCase()}`,
           ...(verb === "remove" ? {} : { json: JSON.stringify(operand) }) };
}

function scalar(field, value) {
  if (isDocument(field)) {
    if (typeof value === "string" || value === null) return value;
    return Array.isArray(value) && value.length === 0 ? "{}" : JSON.stringify(value);
  }
  if (field.enum && typeof value === "string")
    return field.enum.values.find((each) => each.localName.toLowerCase() === value)?.name ?? value;
  return LONG.has(field.scalar) && Number.isSafeInteger(value) ? String(value) : value;
}

function listOfKeyed(field, value) {
  const key = KEY[short(field.message)];
  const only = VALUE[short(field.message)];
  return Object.entries(value).map(([name, member]) =>
    canonical(field.message, { [key]: name, ...(isObject(member) ? member : { [only ?? "?"]: member }) }));
}

function member(field, value) {
  if (value === null) return null;
  if (field.message) {
    if (field.fieldKind === "list") {
      if (isObject(value) && KEY[short(field.message)]) return listOfKeyed(field, value);
      return Array.isArray(value) ? value.map((each) => canonical(field.message, each)) : value;
    }
    if (short(field.message) === "PatchList" && Array.isArray(value))
      return canonical(field.message, { steps: value });
    return canonical(field.message, Array.isArray(value) && value.length === 0 ? {} : value);
  }
  return Array.isArray(value) && field.fieldKind === "list" ? value.map((each) => scalar(field, each)) : scalar(field, value);
}

export function canonical(desc, value) {
  if (!isObject(value)) return value;
  const said = short(desc) === "PatchStep" ? step(value) : value;
  const made = {};
  for (const [name, each] of Object.entries(said)) {
    const field = fieldOf(desc, name);
    made[field ? field.jsonName : name] = field ? member(field, each) : each;
  }
  return made;
}
