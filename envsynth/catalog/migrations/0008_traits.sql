-- What tasks may share, for splits that must not leak into each other: the world's document, the company or the draw of a
-- mechanism that several worlds were made from, the skin, the repository. One row a task and trait.
CREATE VIEW trait AS
SELECT id, trait, value FROM (
    SELECT task AS id, unnest([
        {'trait': 'world', 'value': CASE
            WHEN candidate ->> '$.environment.kind' = 'world' THEN candidate ->> '$.environment.world'
        END},
        {'trait': 'company', 'value': CASE
            WHEN generator = 'business' AND lead_document ->> '$.group' <> ''
                THEN concat_ws(' ', name, lead_document ->> '$.seed', lead_document ->> '$.group')
        END},
        {'trait': 'mechanism', 'value': candidate ->> '$.metadata.mechanism'},
        {'trait': 'skin', 'value': CASE
            WHEN generator = 'mechanism'
                THEN concat_ws(' ', candidate ->> '$.metadata.family', candidate ->> '$.metadata.skin')
        END},
        {'trait': 'repository', 'value': CASE
            WHEN candidate ->> '$.environment.kind' = 'workspace' THEN regexp_replace(source, '@[^@/:]*$', '')
        END}
    ], recursive := true)
    FROM outcome WHERE status = 'admitted'
)
WHERE value IS NOT NULL;
